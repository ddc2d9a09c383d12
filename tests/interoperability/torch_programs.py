"""Programs that hand arrays to PyTorch and take its tensors, for ``test_swapped``: as ``swapped_programs``."""

TORCH = {
    "torch: from_numpy": """
import torch
t = torch.from_numpy(x)
t[0] = 7.0
x[1] = 8.0
result = x[:2].tolist(), t[:2].tolist(), type(t).__name__, str(t.dtype)
""",
    "torch: as_tensor": """
import torch
t = torch.as_tensor(x)
t[0] = 7.0
x[1] = 8.0
result = x[:2].tolist(), t[:2].tolist()
""",
    "torch: asarray": """
import torch
t = torch.asarray(x)
t[0] = 7.0
x[1] = 8.0
result = x[:2].tolist(), t[:2].tolist()
""",
    "torch: tensor": """
import torch
t = torch.tensor(x)
t[0] = 7.0
result = x[:2].tolist(), t[:2].tolist(), str(t.dtype), t.shape == (n,)
""",
    "torch: from_dlpack": """
import torch
t = torch.from_dlpack(x)
t[0] = 7.0
x[1] = 8.0
result = x[:2].tolist(), t[:2].tolist()
""",
    "torch: to numpy dlpack": """
import torch
t = torch.arange(5.0)
y = np.from_dlpack(t)
t[0] = 7.0
result = y.tolist(), y.dtype.name
""",
    "torch: asarray of tensor": """
import torch
t = torch.arange(5.0)
y = np.asarray(t)
t[0] = 7.0
y[1] = 9.0
result = y.tolist(), t.tolist(), y.dtype.name
""",
    "torch: array of tensor": """
import torch
t = torch.arange(5.0)
y = np.array(t)
t[0] = 7.0
result = y.tolist(), y.dtype.name
""",
    "torch: np.sin of a tensor": """
import torch
t = torch.arange(5.0, dtype=torch.float64)
result = type(np.sin(t)).__name__, [round(float(v), 5) for v in np.sin(t)]
""",
    "torch: tensor of list of arrays": """
import torch
t = torch.tensor(np.array([x[:3], x[3:6]]))
result = tuple(t.shape), t.tolist()
""",
    "torch: tensor of list": """
import torch
t = torch.tensor([x[:3], x[3:6]])
result = tuple(t.shape), t.tolist(), str(t.dtype)
""",
    "torch: index by tensor": """
import torch
t = torch.tensor([1, 2, 3])
result = x[t].tolist()
""",
    "torch: assign": """
import torch
t = torch.zeros(5, dtype=torch.float64)
t[:3] = torch.from_numpy(x[:3].copy())
x[3:5] = t[:2]
result = t.tolist(), x[:5].tolist()
""",
    "torch: strided": """
import torch
t = torch.from_numpy(m[::2, ::3])
result = tuple(t.shape), t.stride(), t.sum().item() - m[::2, ::3].sum() < 1e-9
""",
    "torch: dtypes": """
import torch
result = [str(torch.from_numpy(np.zeros(3, d)).dtype) for d in ('f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', '?', 'c8', 'c16')]
""",
    "torch: dtypes as_tensor": """
import torch
result = [str(torch.as_tensor(np.zeros(3, d)).dtype) for d in ('f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', '?', 'c8', 'c16')]
""",
    "torch: readonly": """
import torch, warnings
warnings.simplefilter("ignore")
x.flags.writeable = False
result = torch.from_numpy(x).numpy(), torch.as_tensor(x)[0].item()
""",
    "torch: dataset": """
import torch
from torch.utils.data import TensorDataset, DataLoader
d = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(i)), batch_size=16)
result = [tuple(v.shape for v in p) for p in d][:3], sum(float(p[0].sum()) for p in d)
""",
    "torch: collate": """
import torch
from torch.utils.data import DataLoader
class D:
    def __len__(self): return 8
    def __getitem__(self, k): return m[k], x[k], i[k], int(i[k])
b_ = next(iter(DataLoader(D(), batch_size=8)))
result = [(tuple(v.shape), str(v.dtype), v.sum().item()) for v in b_]
""",
    "torch: grad": """
import torch
w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
X = torch.from_numpy(m)
l = ((X @ w - 1) ** 2).mean()
l.backward()
result = w.grad.numpy() + 0, np.asarray(w.grad) * 2
""",
    "torch: grad to numpy": """
import torch
w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
try:
    np.asarray(w)
except RuntimeError as e:
    result = str(e)[:40]
""",
    "torch: detach": """
import torch
w = torch.ones(8, dtype=torch.float64, requires_grad=True)
result = np.sqrt(w.detach().numpy() * 4), np.array(w.detach())
""",
    "torch: linear": """
import torch
torch.manual_seed(0)
L = torch.nn.Linear(8, 2).double()
with torch.no_grad():
    L.weight.copy_(torch.from_numpy(m[:2]))
    L.bias.zero_()
    y = L(torch.from_numpy(m)).numpy()
result = np.abs(y - m @ m[:2].T).max() < 1e-9, y.shape
""",
    "torch: save load": """
import torch
torch.save({'x': torch.from_numpy(x), 'y': x * 2}, folder / 'f.pt')
r = torch.load(folder / 'f.pt', weights_only=False)
result = r['x'].numpy(), r['y']
""",
    "torch: testing": """
import torch
np.testing.assert_allclose(torch.from_numpy(x), x)
np.testing.assert_array_equal(torch.from_numpy(i), i)
result = ("equal",)
""",
    "torch: concatenate": """
import torch
result = np.concatenate([torch.arange(3.0).numpy(), x[:2]]), np.stack([torch.arange(2.0, dtype=torch.float64), x[:2]])
""",
    "torch: pending before": """
import torch
y = x * 2 + 1
t = torch.from_numpy(y)
z = y + 1
t[:] = 5
result = y[:3].tolist(), z[:3].tolist(), (y + 1)[:2].tolist()
""",
    "torch: pending reader": """
import torch
y = x * 2
z = y.cumsum() + y
t = torch.from_numpy(y)
t.mul_(3)
y[2] = 1
result = z[:4].tolist(), y[:4].tolist(), t[:4].tolist()
""",
    "torch: array dies": """
import torch
y = x * 2
t = torch.from_numpy(y)
del y
import gc
gc.collect()
z = [x * k for k in range(5)]
result = t.numpy() + 0, z[4]
""",
    "torch: inplace numpy": """
import torch
t = torch.zeros(n, dtype=torch.float64)
y = t.numpy()
y += x
y[:2] = 3
np.multiply(y, 2, out=y)
result = t[:4].tolist()
""",
    "torch: asarray inplace": """
import torch
t = torch.zeros(n, dtype=torch.float64)
y = np.asarray(t)
y += x
y[:2] = 3
np.multiply(y, 2, out=y)
result = t[:4].tolist(), y[:4].tolist()
""",
    "torch: from_dlpack inplace": """
import torch
t = torch.zeros(n, dtype=torch.float64)
y = np.from_dlpack(t)
y += x
y[:2] = 3
result = t[:4].tolist(), y[:4].tolist(), y.flags.writeable
""",
    "torch: frombuffer": """
import torch
t = torch.frombuffer(x, dtype=torch.float64)
t[0] = 5
result = x[0], t[1].item()
""",
    "torch: bool of item": """
import torch
t = torch.from_numpy(x)
result = t.sum().item() == x.sum(), float(t.max()), np.float64(t.max()), np.float32(t.min())
""",
    "torch: map_numpy": """
import torch
t = torch.arange(3)
result = np.array([t[0], t[1]]).tolist(), np.array([v for v in t]).dtype.name, np.asarray([torch.arange(2.0), torch.arange(2.0)]).tolist()
""",
    "torch: manual seed": """
import torch
torch.manual_seed(int(i.sum()))
torch.manual_seed(i.sum())
result = (torch.rand(1).item(),)
""",
    "torch: summary": """
import torch
from torch.utils.data import random_split, Subset
s = Subset(list(range(20)), i[:4])
result = [s[k] for k in range(4)]
""",
    "torch: 0-d": """
import torch
z = np.array(3.5)
t = torch.from_numpy(z)
u = torch.as_tensor(x.sum())
result = t.item(), tuple(t.shape), u.dtype == torch.float64, tuple(u.shape)
""",
    "torch: from_numpy of a result": """
import torch
try:
    torch.from_numpy(x.sum())
except TypeError as e:
    result = 'TypeError'
""",
    "torch: quantile": """
import torch
result = torch.quantile(torch.from_numpy(x), x.max().item() / 2).item(), np.quantile(x, torch.tensor([0.5]).numpy())
""",
    "torch: optim": """
import torch
w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
o = torch.optim.SGD([w], lr=float(abs(x.max())) * 0.01)
for k in range(5):
    o.zero_grad()
    l = ((torch.from_numpy(m) @ w - torch.from_numpy(m[:, 0])) ** 2).mean()
    l.backward()
    o.step()
result = w.detach().numpy()
""",
    "torch: np.add of an array and a tensor": """
import torch
t = torch.arange(1., n + 1, dtype=torch.float64)
result = [(type(v).__name__, np.asarray(v)) for v in (np.add(x, t), np.multiply(t, 2), np.maximum(t, x), np.add.reduce(t))]
""",
    "torch: operators with results": """
import torch
t = torch.arange(4.0, dtype=torch.float64)
result = [v.numpy() for v in (t * x.max(), x.max() * t, t - x.min(), x.min() / (t + 1), t > x.max(), x.max() <= t, t**i.max())]
""",
    "torch: operators in place": """
import torch
t = torch.arange(4.0, dtype=torch.float64)
u = t
t += x.max()
t *= i.max()
t -= x.min()
result = u is t, u.numpy() + 0
""",
    "torch: index by array": """
import torch
t = torch.arange(1.0 * n)
result = t[i[:5]].tolist(), t[b].shape[0]
""",
    "torch: batches": """
import torch
from torch.utils.data import default_collate
r = default_collate([{'a': m[k] * 2, 's': m[k].sum(), 't': (k, m[k])} for k in range(4)])
result = r['a'].numpy(), r['s'].numpy(), r['t'][1].shape == (4, 8)
""",
    "torch: integers and shapes": """
import torch
result = tuple(torch.zeros(i[0], i[1]).shape), tuple(torch.ones((int(i.max()), 2)).shape), tuple(torch.arange(24.).reshape(i[2], -1).shape)
""",
    "torch: lists of results": """
import torch
t = torch.tensor([x.max(), x.min()])
result = t.numpy(), torch.tensor([[x.max(), 1], [2, 3]]).numpy(), torch.tensor([i.max(), 1]).numpy(), torch.tensor([b.any()]).numpy()
""",
    "torch: strides below zero": """
import torch
try:
    torch.as_tensor(x[::-1])
except ValueError as error:
    result = str(error)[:50]
""",
    "torch: masks": """
import torch
t = torch.as_tensor(b)
result = x[t], x[b], x[t.numpy()]
""",
}
