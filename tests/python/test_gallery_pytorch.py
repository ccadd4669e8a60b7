"""The program of the gallery for PyTorch: the kernel against PyTorch's own sampling, and that training works."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from examples.gallery import pytorch_image  # noqa: E402


def theirs(table, points):
    """The same by `grid_sample`: positions from -1 to 1, features first."""
    sampled = torch.nn.functional.grid_sample(
        table.permute(2, 0, 1)[None], 2 * points[None, None] - 1, align_corners=True, padding_mode="border"
    )
    return sampled[0, :, 0].T


@pytest.mark.parametrize("shape", [(2, 2, 1), (7, 5, 4), (40, 33, 6)])
def test_sampling_and_its_gradient_are_pytorchs(shape):
    torch.manual_seed(1)
    table, points = torch.randn(shape), torch.rand(500, 2)
    points[:4] = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    cotangent = torch.randn(500, shape[2])
    results = []
    for function in (pytorch_image.sample, theirs):
        leaf = table.clone().requires_grad_()
        sampled = function(leaf, points)
        sampled.backward(cotangent)
        results.append((sampled.detach(), leaf.grad))
    # Values below 5 and sums of up to 500 of them, each with a few roundings.
    torch.testing.assert_close(results[0][0], results[1][0], rtol=0, atol=2e-5)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=2e-3)


def test_colours_of_the_nearest_pixels():
    photograph = torch.arange(3 * 5 * 3, dtype=torch.float32).reshape(3, 5, 3)
    points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.3, 0.6]])
    expected = torch.stack([photograph[0, 0], photograph[2, 4], photograph[1, 1]])
    torch.testing.assert_close(pytorch_image.pixels_of(photograph, points), expected)


@pytest.mark.parametrize("compiles", [False, True], ids=["eager", "compiled"])
def test_the_network_learns(compiles):
    y, x = torch.meshgrid(torch.linspace(0, 1, 24), torch.linspace(0, 1, 20), indexing="ij")
    photograph = torch.stack([x, y, (torch.hypot(x - 0.5, y - 0.5) < 0.3).float()], dim=-1)
    image, losses = pytorch_image.fit(photograph, 80, 400, resolutions=(4, 12), compiles=compiles)
    assert len(losses) == 80
    assert losses[-1] < 0.1 * losses[0]
    learned = pytorch_image.picture(image, 24, 20)
    assert learned.shape == photograph.shape
    assert torch.nn.functional.mse_loss(learned, photograph) < 0.1 * losses[0]
