"""MiniLM's encoder, put together from the packaged weights so that products are summed in 8 bits.

The packaged graph multiplies its 8-bit weights out to 32 bits as it is loaded: four times the memory, twice the time.
Here they stay as they are, with the scales they came with. What they are multiplied with is brought to 8 bits too,
row by row in blocks: a text's vector moves by 0.001 of a cosine, and not with what is embedded beside it.

Sources: the layers are those of Devlin et al., NAACL 2019; the operators, onnxruntime's contrib operators.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUTS: Final = ("input_ids", "attention_mask")

_LAYERS: Final = 6
_HEADS: Final = 12
_WIDTH: Final = 384
_EPSILON: Final = 1e-12
_BLOCK: Final = 128
_ZERO_POINT: Final = 128
_IN_8_BITS: Final = 4
_OPSET: Final = 17
_IR_VERSION: Final = 10
_CONTRIB: Final = "com.microsoft"
_EMBEDDINGS: Final = "inner.embeddings."

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Linear:
    """A layer's 8-bit weights (inputs x outputs), the scale of each output, and its bias."""

    weights: Array
    scales: Array
    bias: Array

    @classmethod
    def beside(cls, layers: Sequence["Linear"]) -> "Linear":
        """Return layers of the same input as one."""
        return cls(
            np.concatenate([layer.weights for layer in layers], axis=1),
            np.concatenate([layer.scales for layer in layers]),
            np.concatenate([layer.bias for layer in layers]),
        )


class Packaged:
    """The packaged model's weights by their names."""

    def __init__(self, model: bytes) -> None:
        graph = onnx.load_from_string(model).graph
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._makers = {output: node for node in graph.node for output in node.output}
        self._sums = {name: node for node in graph.node if node.op_type == "Add" for name in node.input}

    def array(self, name: str) -> Array:
        """Return a tensor."""
        return numpy_helper.to_array(self._tensors[name])

    def table(self, name: str) -> Array:
        """Return a table of embeddings, multiplied out."""
        scaled: Array = self.array(f"{name}.weight_q").astype(np.float32) * self.array(f"{name}.weight_scale")
        return scaled

    def linear(self, name: str) -> Linear:
        """Return a linear layer: only biases have names, and weights stand in the product that one is added to."""
        product = next(input_ for input_ in self._sums[f"{name}.bias"].input if input_ in self._makers)
        scaling = self._makers[self._makers[product].input[1]]
        scales = next(input_ for input_ in scaling.input if input_ in self._tensors)
        cast = next(self._makers[input_] for input_ in scaling.input if input_ in self._makers)
        return Linear(self.array(cast.input[0]), self.array(scales).reshape(-1), self.array(f"{name}.bias"))


class Encoder:
    """The graph as it grows; every method adds an operator and returns the name of what it computes."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def weights(self, name: str, value: Array) -> str:
        """Add something that is known."""
        self._weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, kind: str, inputs: Sequence[str], name: str, *, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output."""
        self._nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def linear(self, input_: str, layer: Linear, name: str) -> str:
        """Add a linear layer, its weights by output and in blocks of inputs, counted from a zero point."""
        inputs, outputs = layer.weights.shape
        blocks = inputs // _BLOCK
        moved = (layer.weights.T.astype(np.int16) + _ZERO_POINT).astype(np.uint8)
        operands = (
            input_,
            self.weights(f"{name}.weights", moved.reshape(outputs, blocks, _BLOCK)),
            self.weights(f"{name}.scales", np.repeat(layer.scales, blocks).astype(np.float32)),
            "",
            "",
            self.weights(f"{name}.bias", layer.bias),
        )
        sizes = {"K": inputs, "N": outputs, "bits": 8, "block_size": _BLOCK, "accuracy_level": _IN_8_BITS}
        return self.add("MatMulNBits", operands, name, domain=_CONTRIB, **sizes)

    def norm(self, inputs: tuple[str, str], packaged: Packaged, source: str, name: str) -> str:
        """Add the normalized sum of two inputs."""
        summed = self.add("Add", inputs, f"{name}.sum")
        scale = self.weights(f"{name}.scale", packaged.array(f"{source}.weight"))
        bias = self.weights(f"{name}.bias", packaged.array(f"{source}.bias"))
        return self.add("LayerNormalization", (summed, scale, bias), name, axis=-1, epsilon=_EPSILON)

    def split(self, input_: str, names: Sequence[str]) -> None:
        """Add the cutting of an input into parts of the model's width."""
        sizes = self.weights(f"{input_}.sizes", np.full(len(names), _WIDTH))
        self._nodes.append(helper.make_node("Split", [input_, sizes], list(names), axis=-1))

    def model(self, output: str) -> bytes:
        """Return the whole as a model."""
        graph = helper.make_graph(
            self._nodes,
            "minilm",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in INPUTS],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["texts", "tokens", _WIDTH])],
            self._weights,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        encoded: bytes = model.SerializeToString()
        return encoded


def encoder(model: bytes) -> bytes:
    """Return the packaged model as an encoder of `INPUTS` (texts x tokens), whose output is each token's vector."""
    packaged, graph = Packaged(model), Encoder()
    state = _embedded(graph, packaged)
    mask = graph.add("Cast", (INPUTS[1],), "mask", to=TensorProto.INT32)
    for number in range(_LAYERS):
        state = _layer(graph, packaged, number, state, mask)
    return graph.model(state)


def _embedded(graph: Encoder, packaged: Packaged) -> str:
    """Words and their places; of a word's 8-bit row only what a text asks for is multiplied out."""
    words, ids = f"{_EMBEDDINGS}word_embeddings", INPUTS[0]
    rows = graph.add("Gather", (graph.weights("words", packaged.array(f"{words}.weight_q")), ids), "rows")
    scales = graph.weights("word_scales", packaged.array(f"{words}.weight_scale"))
    scaled = graph.add("Mul", (_float(graph, rows), graph.add("Gather", (scales, ids), "row_scales")), "scaled")
    one_kind = packaged.array(f"{_EMBEDDINGS}token_type_embeddings.weight")[0]
    places = graph.weights("places", packaged.table(f"{_EMBEDDINGS}position_embeddings") + one_kind)
    begin = graph.weights("begin", np.zeros(1, dtype=np.int64))
    end = graph.add("Shape", (ids,), "end", start=1, end=2)
    placed = graph.add("Slice", (places, begin, end), "placed")
    return graph.norm((scaled, placed), packaged, f"{_EMBEDDINGS}LayerNorm", "embedded")


def _float(graph: Encoder, name: str) -> str:
    return graph.add("Cast", (name,), f"{name}.float", to=TensorProto.FLOAT)


def _layer(graph: Encoder, packaged: Packaged, number: int, state: str, mask: str) -> str:
    source, name = f"inner.encoder.layer.{number}", f"layer{number}"
    wanted = [packaged.linear(f"{source}.attention.self.{part}") for part in ("query", "key", "value")]
    parts = [f"{name}.query", f"{name}.key", f"{name}.value"]
    graph.split(graph.linear(state, Linear.beside(wanted), f"{name}.asked"), parts)
    heads = graph.add("MultiHeadAttention", (*parts, "", mask), f"{name}.heads", domain=_CONTRIB, num_heads=_HEADS)
    attended = graph.linear(heads, packaged.linear(f"{source}.attention.output.dense"), f"{name}.attended")
    state = graph.norm((state, attended), packaged, f"{source}.attention.output.LayerNorm", f"{name}.attention")
    inner = graph.linear(state, packaged.linear(f"{source}.intermediate.dense"), f"{name}.inner")
    active = graph.add("Gelu", (inner,), f"{name}.active", domain=_CONTRIB)
    output = graph.linear(active, packaged.linear(f"{source}.output.dense"), f"{name}.output")
    return graph.norm((state, output), packaged, f"{source}.output.LayerNorm", f"{name}.state")
