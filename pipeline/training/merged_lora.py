"""Compute LoRA as one product, y = x (W + s B A)', with gradients of A and B only.

peft computes x W' and s (x A') B' separately, with copies of the large results in between. The merged product makes a training
step shorter (tests/benchmarks/tuning.py), and the model trains with the same rounded weights that the engines serve.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any


def use_merged_forward(model: Any) -> Any:
    """Replace the forward method of every plain LoRA module. Modules with dropout, a bias or a variant keep peft's method.

    Args:
        model: A peft model with one adapter.

    Returns:
        The model.
    """
    from peft.tuners.lora import Linear

    for module in model.modules():
        if type(module) is Linear and _is_plain(module):
            module.forward = partial(_forward, module)
    return model


def _is_plain(module: Any) -> bool:
    import torch

    (name,) = module.active_adapters
    special = module.lora_variant.get(name), module.lora_B[name].bias is not None, module.fan_in_fan_out
    return isinstance(module.lora_dropout[name], torch.nn.Identity) and not any(special)


def _forward(module: Any, x: Any) -> Any:
    base = module.base_layer
    (name,) = module.active_adapters
    a, b = module.lora_A[name].weight, module.lora_B[name].weight
    y = make_merged_product()(x, base.weight, a, b, module.scaling[name])
    return y if base.bias is None else y + base.bias


@cache
def make_merged_product() -> Callable[..., Any]:
    """Make the function of the product and its gradients, without importing torch before it is needed."""
    import torch

    def merge_weights(weight: Any, a: Any, b: Any, scale: float) -> Any:
        return torch.addmm(weight, b.to(weight.dtype), a.to(weight.dtype), alpha=scale)

    class MergedProduct(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, a: Any, b: Any, scale: float) -> Any:
            ctx.save_for_backward(x, weight, a, b)
            ctx.scale = scale
            return torch.nn.functional.linear(x.to(weight.dtype), merge_weights(weight, a, b, scale))

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            x, weight, a, b = ctx.saved_tensors
            merged = merge_weights(weight, a, b, ctx.scale)  # recomputed, because storing it would take the memory of the model
            dy, flat_x = gradient.to(merged.dtype).flatten(0, -2), x.to(merged.dtype).flatten(0, -2)
            dx = (dy @ merged).view(x.shape).to(x.dtype) if ctx.needs_input_grad[0] else None
            da = (dy @ b.to(dy.dtype)).T @ flat_x
            db = dy.T @ (flat_x @ a.to(flat_x.dtype).T)
            return dx, None, ctx.scale * da.to(a.dtype), ctx.scale * db.to(b.dtype), None

    return MergedProduct.apply  # type: ignore[no-any-return]
