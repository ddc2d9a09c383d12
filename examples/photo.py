"""Turn a photograph into a pencil drawing.

The photograph (scikit-learn's ``china.jpg``, tiled up to 13 megapixels) is made grey, gamma corrected, blurred, run through Sobel's
edge filter, and its histogram is equalised.

    python examples/photo.py --output drawing.png
"""

import argparse
import json
import time
from importlib.resources import files

import numpy as np
from PIL import Image

LUMA = (0.2126, 0.7152, 0.0722)
GAMMA = 2.2
BINOMIAL = np.array([1, 8, 28, 56, 70, 56, 28, 8, 1]) / 256
LEVELS = 256


def load(tiles):
    """The photograph as bytes of shape (height, width, 3), repeated tiles x tiles times."""
    photo = Image.open(files("sklearn.datasets") / "images" / "china.jpg")
    width, height = photo.size
    large = Image.new("RGB", (tiles * width, tiles * height))
    for row in range(tiles):
        for column in range(tiles):
            large.paste(photo, (column * width, row * height))
    return np.asarray(large)


def grey(photo):
    """Luma between 0 and 1."""
    red, green, blue = LUMA
    return (red * photo[..., 0] + green * photo[..., 1] + blue * photo[..., 2]) / 255


def blur(image, taps=BINOMIAL):
    """Separable convolution with `taps`; the border is repeated outwards."""
    height, width = image.shape
    padded = np.pad(image, len(taps) // 2, mode="edge")
    rows = sum(tap * padded[i : i + height] for i, tap in enumerate(taps))
    return sum(tap * rows[:, i : i + width] for i, tap in enumerate(taps))


def sobel(image):
    """Magnitude of the gradient."""
    padded = np.pad(image, 1, mode="edge")
    down = padded[2:] - padded[:-2]
    right = padded[:, 2:] - padded[:, :-2]
    dy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    dx = right[:-2] + 2 * right[1:-1] + right[2:]
    return np.sqrt(dx**2 + dy**2)


def equalise(image):
    """Bytes whose histogram is as flat as can be."""
    low, high = image.min(), image.max()
    levels = ((image - low) * ((LEVELS - 1) / (high - low))).astype(np.uint8)
    histogram = np.bincount(levels.ravel(), minlength=LEVELS)
    cumulated = histogram.cumsum()
    share = (cumulated - cumulated[0]) / (cumulated[-1] - cumulated[0])
    return np.round(share * (LEVELS - 1)).astype(np.uint8)[levels]


def draw(photo):
    """The whole pipeline: bytes (height, width, 3) in, bytes (height, width) out."""
    image = grey(photo) ** (1 / GAMMA)
    edges = sobel(blur(image))
    return 255 - equalise(edges)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiles", type=int, default=7, help="how often the photograph is repeated each way (7: 13 megapixels)")
    parser.add_argument("--repeat", type=int, default=1, help="how often the drawing is made")
    parser.add_argument("--output", help="a PNG to write")
    parser.add_argument("--json", action="store_true", help="print the timings as JSON")
    options = parser.parse_args()

    start = time.perf_counter()
    photo = load(options.tiles)
    decoded = time.perf_counter() - start

    drawn = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        drawing = Image.fromarray(draw(photo))
        drawn.append(time.perf_counter() - start)

    start = time.perf_counter()
    if options.output:
        drawing.save(options.output, compress_level=1)
    encoded = time.perf_counter() - start

    if options.json:
        print(json.dumps({"shape": photo.shape, "decode": decoded, "compute": drawn, "encode": encoded}))
    else:
        height, width, _ = photo.shape
        print(f"{height} x {width} pixels: {decoded:.2f} s to decode, {min(drawn):.2f} s to draw, {encoded:.2f} s to encode")


if __name__ == "__main__":
    main()
