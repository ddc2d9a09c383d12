"""The fusion cost model: what recomputing costs against storing.

In: counts (elements, evaluations, operations).  Out: a decision with its reason.  Promise: every number the scheduler weighs stands
here under a name; the unit is one vectorised addition of one element.
"""

from __future__ import annotations

from lazynp.values.records import Row

LOAD = 0.5  # reading one element; neighbours that several points of a stencil read come from the first-level cache
STORE = 4.0  # writing it (write-allocate and page traffic included)
LAUNCH = 20_000.0  # one more kernel: about two microseconds of the above

KERNEL_NODES = 300  # expression nodes in one kernel; compile time grows with it
KERNEL_BUFFERS = 48  # arrays one kernel touches
KERNEL_POINTS = 16  # different indices at which one kernel may evaluate one value
SPLIT_FROM = 2  # elements of the inner loop, at least, where a loop is split so that no index is divided: a division costs more than a turn
JOINED = 4  # kernels over the same loops, the youngest ones, that a value may join which none of them reads: later ones share most with it
SEARCH = 256  # kernels and calls looked at for a way round before it counts as found: a search must not make long programs slow
TURNED = 8  # operations between a transposition and the product it is handed to: beyond, looking for it costs more than it may save
JOINED_BYTES = 16 << 20  # of values on the way in one kernel, from which on only what it reads joins it: all live from its start
KEPT_SMALL = 4096  # bytes of a result that is kept where it is smaller than what it is reduced from: storing it costs next to nothing
KEPT_BYTES = 1 << 20  # saved by keeping a value in place of the calls under it, which may take a kernel of its own
PEAK_BYTES = 16 << 20  # at once in a program, from which on its order is looked at: the one of recording may need less
PEAK_SHARE = 4  # a program may hold so much of what NumPy would hold besides that, and PEAK_BYTES, before it is fused again for less memory
SMALL_STORE = 4096  # elements of a write below which the processor leaves it to NumPy: runs of them copy their base once, write in place

STAGE_COST = 12.0  # a value at least this dear is kept in scratch for the next pass over the same axis instead of computed again
SCRATCH_BYTES = 256 * 1024  # what one thread may stage of one value: a share of the second-level cache
SCRATCH_TOTAL = 1024 * 1024  # and of all values of a kernel: scratch lies on the stack of the thread
SHARED_BYTES = 40 * 1024  # what the threads of a block may stage together: every device has 48 KiB, and some is for combining

SHORT_ROW = 7  # elements of a row up to which it is written out: strides beyond do not vectorise, and 8 elements do by themselves
SHORT_VALUES = 600  # scalar operations that the elements of a row may have together where they are written out
SEGMENTS = 5  # pieces a loop is cut into at the borders of padding and of joined parts: each is code of its own
SEGMENT_VALUES = 600  # scalar operations all pieces may have together
SMALL_REDUCTION = 32  # a reduction over at most so many elements is unrolled (at most 32, the lanes); a kernel for each number of them
SMALL_DEAR_REDUCTION = 8  # the same where each element is dear: its loop is better vectorised

CLAIM_BYTES = 64 * 1024  # arrays from this size on are written in place if no other reference exists: smaller ones are copied as fast
CLAIM_SHARE = 0.5  # if at most this part is written: what is overwritten is saved first, in case one exists
CLAIM_CONTESTS = 3  # claims in a row that were for nothing, after which copying is left to cost what it costs

HELD_CAP = 1 << 50  # bytes, likewise
ESTIMATE_CAP = 1e12  # of one element: chains of values that are each used twice would grow without bound


class Decision(Row):
    store: bool
    reason: str


def recompute_or_store(size: int, evaluations: int, points: int, estimate: float, same_kernel: bool) -> Decision:
    """Tell whether a value of ``size`` elements is stored, or computed again at each of ``evaluations`` requests.

    Parameters
    ----------
    size : int
        Elements of the value.
    evaluations : int
        How often an element would be computed in all if it is not stored.
    points : int
        Number of distinct (kernel, index) requests.
    estimate : float
        Cost of computing one element from what is stored.
    same_kernel : bool
        All requests come from one kernel.
    """
    if points == 1 and evaluations <= size:
        return Decision(False, "used once")
    recompute = estimate * evaluations
    stored = size * (estimate + STORE) + evaluations * LOAD + LAUNCH
    if recompute <= stored:
        return Decision(False, f"cheaper computed {evaluations / max(size, 1):.3g} times an element than stored")
    where = "at several indices of one kernel" if same_kernel else "by several kernels"
    if points == 1:
        where = "repeatedly along a broadcast axis"
    return Decision(True, f"needed {where}: computing it {evaluations / max(size, 1):.3g} times an element costs more than storing it")
