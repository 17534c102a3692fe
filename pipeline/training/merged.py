"""LoRA as one product: y = x (W + s B A)', with the gradients of A and B alone.

peft computes x W' and s (x A') B' apart, with copies of the large results between them. Merged, as the engines serve it, a
training step is shorter (tests/benchmarks/tuning.py), and the model trains on the very weights, rounded, that will be served.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any


def merge_forward(model: Any) -> Any:
    """Have every plain LoRA module of a peft model compute merged: those with dropout, a bias or a variant stay peft's.

    Args:
        model: From peft, with one adapter.

    Returns:
        The model.
    """
    from peft.tuners.lora import Linear

    for module in model.modules():
        if type(module) is Linear and _plain(module):
            module.forward = partial(_forward, module)
    return model


def _plain(module: Any) -> bool:
    import torch

    (name,) = module.active_adapters
    odd = module.lora_variant.get(name), module.lora_B[name].bias is not None, module.fan_in_fan_out
    return isinstance(module.lora_dropout[name], torch.nn.Identity) and not any(odd)


def _forward(module: Any, x: Any) -> Any:
    base = module.base_layer
    (name,) = module.active_adapters
    a, b = module.lora_A[name].weight, module.lora_B[name].weight
    y = _merged()(x, base.weight, a, b, module.scaling[name])
    return y if base.bias is None else y + base.bias


@cache
def _merged() -> Callable[..., Any]:
    """The product and its gradients; made where torch is loaded anyway."""
    import torch

    def whole_of(weight: Any, a: Any, b: Any, scale: float) -> Any:
        return torch.addmm(weight, b.to(weight.dtype), a.to(weight.dtype), alpha=scale)

    class Merged(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, a: Any, b: Any, scale: float) -> Any:
            ctx.save_for_backward(x, weight, a, b)
            ctx.scale = scale
            return torch.nn.functional.linear(x.to(weight.dtype), whole_of(weight, a, b, scale))

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            x, weight, a, b = ctx.saved_tensors
            whole = whole_of(weight, a, b, ctx.scale)  # made again: kept, it would be a second model
            up, flat = gradient.to(whole.dtype).flatten(0, -2), x.to(whole.dtype).flatten(0, -2)
            dx = (up @ whole).view(x.shape).to(x.dtype) if ctx.needs_input_grad[0] else None
            da = (up @ b.to(up.dtype)).T @ flat
            db = up.T @ (flat @ a.to(flat.dtype).T)
            return dx, None, ctx.scale * da.to(a.dtype), ctx.scale * db.to(b.dtype), None

    return Merged.apply  # type: ignore[no-any-return]
