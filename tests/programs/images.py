"""Pictures as arrays: tones, masks, transforms, drawing."""

from tests.programs.tolerance import close


def _picture(np, h=12, w=16):
    y, x = np.mgrid[:h, :w]
    return ((x * 13 + y * 29 + (x * y) % 17 * 5) % 256).astype(np.uint8)


def histogram_equalisation(np):
    image = _picture(np)
    histogram = np.bincount(image.ravel(), minlength=256)
    cdf = histogram.cumsum()
    low = cdf[cdf > 0].min()
    table = np.clip((cdf - low) * 255 // (image.size - low), 0, 255).astype(np.uint8)
    return table[image], histogram.max()


def integral_image_box_sums(np):
    image = _picture(np, 8, 8).astype(np.int64)
    integral = np.zeros((9, 9), np.int64)
    integral[1:, 1:] = image.cumsum(0).cumsum(1)
    k = 3
    boxes = integral[k:, k:] - integral[:-k, k:] - integral[k:, :-k] + integral[:-k, :-k]
    return boxes, boxes[2, 3] == image[2:5, 3:6].sum()


def box_blur_shifted_sums(np):
    image = _picture(np).astype(float)
    padded = np.pad(image, 1, mode="edge")
    out = np.zeros_like(image)
    for dy in range(3):
        for dx in range(3):
            out += padded[dy : dy + 12, dx : dx + 16]
    return (out / 9).astype(np.uint8)


def convolution_by_loops(np):
    image = _picture(np, 6, 6).astype(np.int32)
    kernel = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]])
    out = np.zeros((4, 4), dtype=np.int32)
    for i in range(4):
        for j in range(4):
            out[i, j] = (image[i : i + 3, j : j + 3] * kernel).sum()
    return out


@close(1e-15, "exponentials of lazynp are within 4 ulp; both sums are normalised")
def gaussian_blur_separable(np):
    image = _picture(np).astype(float)
    x = np.arange(-2, 3)
    g = np.exp(-(x**2) / 2.0)
    g /= g.sum()
    padded = np.pad(image, ((0, 0), (2, 2)), mode="reflect")
    rows = sum(g[k] * padded[:, k : k + 16] for k in range(5))
    padded = np.pad(rows, ((2, 2), (0, 0)), mode="reflect")
    return sum(g[k] * padded[k : k + 12] for k in range(5))


def sobel_edges(np):
    f = _picture(np).astype(np.float32)
    gx = f[:-2, 2:] + 2 * f[1:-1, 2:] + f[2:, 2:] - f[:-2, :-2] - 2 * f[1:-1, :-2] - f[2:, :-2]
    gy = f[2:, :-2] + 2 * f[2:, 1:-1] + f[2:, 2:] - f[:-2, :-2] - 2 * f[:-2, 1:-1] - f[:-2, 2:]
    magnitude = np.sqrt(gx * gx + gy * gy)
    edges = magnitude > magnitude.mean()
    return magnitude, edges.sum()


def grayscale_and_threshold(np):
    rgb = np.stack([_picture(np), _picture(np)[::-1], _picture(np)[:, ::-1]], axis=-1)
    grey = (rgb[..., 0].astype(int) * 299 + rgb[..., 1].astype(int) * 587 + rgb[..., 2].astype(int) * 114) // 1000
    binary = np.where(grey > grey.mean(), 255, 0).astype("u1")
    return grey, binary, rgb.reshape(-1, 3).max(axis=0)


def otsu_threshold(np):
    image = _picture(np)
    p = np.bincount(image.flatten(), minlength=256) / image.size
    omega = np.cumsum(p)
    mu = np.cumsum(p * np.arange(256))
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mu[-1] * omega - mu) ** 2 / (omega * (1 - omega))
    t = np.nanargmax(np.where(np.isfinite(between), between, np.nan))
    return t, (image > t).sum()


def connected_components_labels(np):
    mask = np.array([[1, 1, 0, 0, 1], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0], [1, 0, 1, 1, 0]], bool)
    labels = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    while True:
        p = np.pad(labels, 1)
        best = np.maximum.reduce([p[1:-1, 1:-1], p[2:, 1:-1], p[:-2, 1:-1], p[1:-1, 2:], p[1:-1, :-2]])
        new = np.where(mask, best, 0)
        if (new == labels).all():
            break
        labels = new
    names, relabelled = np.unique(labels, return_inverse=True)
    return relabelled.reshape(mask.shape), len(names) - 1


def flood_fill_with_a_stack(np):
    grid = np.array([[0, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    stack, seen = [(0, 0)], set()
    while stack:
        y, x = stack.pop()
        if (y, x) in seen or not (0 <= y < 4 and 0 <= x < 4) or grid[y, x]:
            continue
        seen.add((y, x))
        stack += [(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)]
    rows, columns = zip(*sorted(seen), strict=True)
    grid[list(rows), list(columns)] = 7
    return grid, len(seen)


def floyd_steinberg_dithering(np):
    image = _picture(np, 5, 6).astype(float)
    h, w = image.shape
    for y in range(h - 1):
        for x in range(1, w - 1):
            old = image[y, x]
            new = 255.0 if old > 127 else 0.0
            image[y, x] = new
            error = old - new
            image[y, x + 1] += error * 7 / 16
            image[y + 1, x - 1] += error * 3 / 16
            image[y + 1, x] += error * 5 / 16
            image[y + 1, x + 1] += error * 1 / 16
    return image


def ordered_dithering(np):
    bayer = np.array([[0, 2], [3, 1]])
    for _ in range(1):
        bayer = np.block([[4 * bayer, 4 * bayer + 2], [4 * bayer + 3, 4 * bayer + 1]])
    image = _picture(np)
    threshold = np.tile((bayer * 256 + 128) // 16, (3, 4))
    return image > threshold, bayer


def flips_and_rotations(np):
    a = _picture(np, 4, 6)
    views = [a[::-1], a[:, ::-1], np.rot90(a), np.rot90(a, 2), np.flipud(a), np.fliplr(a.T), a.T[::-1]]
    return tuple(views), np.array_equal(np.rot90(a, 4), a), [v.shape for v in views]


def gamma_lookup_table(np):
    image = _picture(np)
    table = np.array([round((i / 255.0) ** 2 * 255) for i in range(256)]).astype(np.uint8)
    corrected = np.take(table, image)
    return corrected, corrected.mean() < image.mean()


def alpha_compositing(np):
    base = np.full((6, 6, 3), 200, np.uint8)
    sprite = np.zeros((3, 3, 4), np.uint8)
    sprite[..., 0] = 255
    sprite[..., 3] = [[0, 128, 0], [128, 255, 128], [0, 128, 0]]
    alpha = sprite[..., 3:] / 255.0
    region = base[1:4, 2:5]
    region[:] = (sprite[..., :3] * alpha + region * (1 - alpha)).astype(np.uint8)
    return base


def bilinear_resize(np):
    image = _picture(np, 4, 4).astype(float)
    new = 7
    pos = np.arange(new) * 3 / (new - 1)
    i0 = np.minimum(pos.astype(int), 2)
    f = pos - i0
    rows = image[i0] * (1 - f)[:, None] + image[i0 + 1] * f[:, None]
    return rows[:, i0] * (1 - f) + rows[:, i0 + 1] * f


def median_filter(np):
    image = _picture(np, 6, 6)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, 1, mode="symmetric"), (3, 3))
    return np.median(windows, axis=(2, 3)).astype(image.dtype), windows.shape


def mosaic_by_blocks(np):
    image = _picture(np)
    blocks = image.reshape(3, 4, 4, 4).swapaxes(1, 2)
    means = blocks.mean(axis=(2, 3))
    mosaic = np.repeat(np.repeat(means, 4, axis=0), 4, axis=1)
    return means, mosaic.astype(np.uint8)


def mandelbrot_counts(np):
    y, x = np.ogrid[-1.25:1.25:10j, -2:0.5:12j]
    c = x + 1j * y
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, int)
    for _ in range(6):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        counts += inside
    return counts


def julia_masked(np):
    zx, zy = np.meshgrid(np.linspace(-1.5, 1.5, 11), np.linspace(-1, 1, 9))
    escape = np.full(zx.shape, -1, dtype=np.int16)
    for k in range(6):
        zx, zy = zx * zx - zy * zy - 0.75, 2 * zx * zy + 0.125
        gone = (zx**2 + zy**2 > 4) & (escape < 0)
        escape[gone] = k
        np.clip(zx, -4, 4, out=zx)
        np.clip(zy, -4, 4, out=zy)
    return escape


def checkerboard_circle_gradient(np):
    n = 9
    y, x = np.ogrid[:n, :n]
    canvas = np.zeros((n, n, 3), np.uint8)
    canvas[(x + y) % 2 == 0] = (255, 255, 255)
    canvas[(x - 4) ** 2 + (y - 4) ** 2 <= 9] = [200, 30, 30]
    canvas[..., 2] |= np.linspace(0, 255, n).astype(np.uint8)
    return canvas, canvas.sum(axis=(0, 1))


def nearest_palette_colour(np):
    pixels = np.array([[10, 10, 10], [250, 240, 255], [200, 10, 30], [0, 120, 20]], dtype=np.uint8)
    palette = np.array([[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 128, 0]])
    distance = ((pixels[:, None, :].astype(int) - palette[None]) ** 2).sum(axis=-1)
    index = distance.argmin(axis=1)
    return index, palette[index], distance.min(axis=1)


def hue_from_rgb(np):
    rgb = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [128, 128, 0], [64, 64, 64]]) / 255
    r, g, b = rgb.T
    high, low = rgb.max(1), rgb.min(1)
    delta = np.where(high == low, 1, high - low)
    hue = np.select([high == low, high == r, high == g], [0, (g - b) / delta % 6, (b - r) / delta + 2], (r - g) / delta + 4)
    saturation = np.divide(high - low, high, out=np.zeros_like(high), where=high != 0)
    return hue * 60, saturation, high


def crop_to_content(np):
    image = np.zeros((8, 9), np.uint8)
    image[2:5, 3:7] = 1
    image[3, 7] = 5
    rows, columns = np.any(image, axis=1), np.any(image, axis=0)
    top, bottom = np.where(rows)[0][[0, -1]]
    left, right = np.nonzero(columns)[0][[0, -1]]
    return image[top : bottom + 1, left : right + 1], (int(top), int(left)), np.argwhere(image == 5)
