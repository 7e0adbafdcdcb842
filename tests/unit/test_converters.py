"""Converters: what planning sees of them, and what they write."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import yaml
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

from sembench.core.artifact import opened
from sembench.core.errors import SembenchError
from sembench.core.plugin import CONVERTERS
from sembench.encoders.backbones import build_backbone
from sembench.encoders.folder import load_encoder
from sembench.evaluation.job import ensure
from sembench.plan import Plan
from tests.conftest import ROOT

BACKBONES = yaml.safe_load((ROOT / "registry/backbones.yaml").read_text())


def build(raw: dict[str, Any], source: Path | None, target: Path, readout: str = "mean") -> Path:
    build_backbone("toy", "Toy", CONVERTERS.parse(raw, "toy"), None, readout, source, target)
    return target


def test_planning_loads_no_heavy_library() -> None:
    code = (
        "import sys; from sembench.core.plugin import CONVERTERS\n"
        "for kind in CONVERTERS.modules: CONVERTERS.get(kind)\n"
        "heavy = {'torch', 'transformers', 'pandas', 'numpy', 'scipy', 'sklearn', 'onnx', 'tokenizers', 'safetensors'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_onnx_is_named_by_its_converter_alone() -> None:
    files = [path for path in (ROOT / "sembench").rglob("*.py") if "import onnx" in path.read_text()]
    assert [path.name for path in files] == ["distilbert_onnx.py"]


def test_the_registry_names_known_converters_and_offered_readouts() -> None:
    for name, entry in BACKBONES.items():
        chosen = CONVERTERS.parse(entry["convert"], name)
        assert entry.get("readout", "mean") in chosen.plugin.offers(chosen.config)


@pytest.mark.parametrize("name", ["smoke_bert", "smoke_roberta", "smoke_glove"])
def test_an_encoder_offers_what_its_converter_promised(smoke_backbones: Path, name: str) -> None:
    chosen = CONVERTERS.parse(BACKBONES[name]["convert"], name)
    assert load_encoder(smoke_backbones / name).readouts == chosen.plugin.offers(chosen.config)
    assert sorted(path.name for path in (smoke_backbones / name).iterdir()) == sorted(chosen.plugin.files)


def test_a_readout_that_is_not_offered_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"read-out 'pooler' is not offered by it; it offers cls, mean"):
        build({"kind": "copy"}, tmp_path / "absent", tmp_path / "toy", "pooler")


def test_copied_folders_are_complete(smoke_backbones: Path, tmp_path: Path) -> None:
    source = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path / "source")
    for name in ("encoder.json", "heads.safetensors", "tokenizer_config.json"):
        (source / name).unlink()
    folder = build({"kind": "copy", "pooler": True}, source, tmp_path / "toy", "pooler")
    assert sorted(path.name for path in folder.iterdir()) == sorted(CONVERTERS.get("copy").files)
    assert "pooler" in load_encoder(folder).readouts
    assert "pooler" not in load_encoder(build({"kind": "copy"}, source, tmp_path / "other")).readouts
    tokenizer = AutoTokenizer.from_pretrained(smoke_backbones / "smoke_bert")
    assert tokenizer(["a stone", "bread"], padding=True)["input_ids"][1][-1] == tokenizer.pad_token_id


def test_a_promised_pooler_must_be_there(smoke_backbones: Path, tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"model\.safetensors holds no pooler; remove 'pooler: true'"):
        build({"kind": "copy", "pooler": True}, smoke_backbones / "smoke_roberta", tmp_path / "toy")


def test_a_missing_file_is_named(smoke_backbones: Path, tmp_path: Path) -> None:
    source = shutil.copytree(smoke_backbones / "smoke_bert", tmp_path / "source")
    (source / "tokenizer.json").unlink()
    with pytest.raises(SembenchError, match=r"tokenizer\.json is missing; fetch the data set again"):
        build({"kind": "copy"}, source, tmp_path / "toy")


# --------------------------------------------------------------------------------------------- DistilBERT from ONNX


def quantised(name: str, value: np.ndarray, scale: float) -> tuple[list[TensorProto], np.ndarray]:
    """Tensors of an int8 weight, and the floats that they stand for."""
    whole = np.clip(np.round(value / scale), -100, 100).astype(np.int8)
    parts = {"quantized": whole, "zero_point": np.int8(3), "scale": np.float32(scale)}
    tensors = [numpy_helper.from_array(np.asarray(part), f"{name}_{key}") for key, part in parts.items()]
    return tensors, (whole.astype(np.float32) - np.float32(3)) * np.float32(scale)


def test_distilbert_is_read_from_its_quantised_graph() -> None:
    from sembench.encoders.convert.distilbert_onnx import distilbert_state

    torch.manual_seed(0)
    small = {"vocab_size": 20, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 12}
    model = DistilBertModel(DistilBertConfig(**small))
    tensors, nodes, expected = [], [], {}
    for number, (name, value) in enumerate(model.state_dict().items()):
        floats = value.numpy()
        if "embeddings.weight" in name:
            parts, expected[name] = quantised(f"distilbert.{name}", floats, 0.01)
            tensors += parts
        elif floats.ndim == 2:
            parts, whole = quantised(f"onnx::MatMul_{number}", floats.T, 0.001)
            expected[name] = whole.T
            tensors += parts
            layer = "/distilbert/" + name.removesuffix(".weight").replace(".", "/") + "/MatMul"
            inputs = ["x", f"onnx::MatMul_{number}_DequantizeLinear_Output"]
            nodes.append(helper.make_node("MatMul", inputs, [f"y{number}"], name=layer))
        else:
            expected[name] = floats
            tensors.append(numpy_helper.from_array(floats, f"distilbert.{name}"))
    tensors.append(numpy_helper.from_array(np.zeros(3, np.float32), "classifier.bias"))
    graph = helper.make_graph(nodes, "tagger", [], [], initializer=tensors)
    state = distilbert_state(onnx.helper.make_model(graph))
    assert sorted(state) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(state[name], value)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})


def test_a_graph_without_embeddings_is_named() -> None:
    from sembench.encoders.convert.distilbert_onnx import distilbert_state

    graph = helper.make_graph([], "tagger", [], [])
    with pytest.raises(SembenchError, match=r"lacks the tensor 'distilbert\.embeddings\.word_embeddings"):
        distilbert_state(onnx.helper.make_model(graph))


# ----------------------------------------------------------------------------------------------------- word vectors


def test_gloves_text_with_blanks_in_words(tmp_path: Path) -> None:
    (tmp_path / "glove.tiny.txt").write_text("stone 1 2\nat name@domain.com 3 4.5\n. . -1 0\n", encoding="utf-8")
    folder = build({"kind": "glove_text", "lowercase": False}, tmp_path, tmp_path / "toy")
    assert (folder / "vocab.txt").read_text() == "stone\nat name@domain.com\n. .\n"
    assert load_file(folder / "vectors.safetensors")["vectors"].tolist() == [[1, 2], [3, 4.5], [-1, 0]]
    assert json.loads((folder / "encoder.json").read_text())["lowercase"] is False


def test_a_short_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "glove.tiny.txt").write_text("stone 1 2\nbread 1\n", encoding="utf-8")
    with pytest.raises(SembenchError, match=r"glove\.tiny\.txt, line 2: 1 numbers where 2 are expected"):
        build({"kind": "glove_text", "lowercase": False}, tmp_path, tmp_path / "toy")


def test_no_text_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"holds 0 files named glove\.\*\.txt"):
        build({"kind": "glove_text", "lowercase": False}, tmp_path, tmp_path / "toy")


def test_unequal_words_and_vectors(tmp_path: Path) -> None:
    import pandas as pd

    np.save(tmp_path / "glove_6B_50d_emb.npy", np.zeros((3, 4)))
    pd.DataFrame({"index": ["a", "b"]}).to_parquet(tmp_path / "glove_6B_index.parquet")
    with pytest.raises(SembenchError, match="2 words but 3 vectors"):
        build({"kind": "glove_npy", "lowercase": True}, tmp_path, tmp_path / "toy")


# -------------------------------------------------------------------------------------- others on the same data folder


def test_whoever_the_umask_lets_read_can_read_a_model_folder(smoke_backbones: Path, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        drawn = build(BACKBONES["smoke_bert"]["convert"], ROOT / "tests/fixtures/words", tmp_path / "drawn")
        vectors = build(BACKBONES["smoke_glove"]["convert"], ROOT / "tests/fixtures/words", tmp_path / "vectors")
        copied = build({"kind": "copy"}, shutil.copytree(drawn, tmp_path / "source"), tmp_path / "copied")
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for folder in (drawn, vectors, copied) for path in folder.iterdir()}
    assert set(modes.values()) == {0o640}, modes
    # Files that others are to read come from one place, which asks the umask.
    files = [path for path in (ROOT / "sembench").rglob("*.py") if re.search("mkstemp|NamedTemp", path.read_text())]
    assert [path.name for path in files] == ["files.py"]


def test_two_at_once_on_an_empty_data_folder_build_once(registry_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, both, built = Plan("smoke", root=registry_copy), threading.Barrier(2), []

    def build_slowly(name: str, *rest: Any) -> None:
        built.append(name)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.2)  # a second one that is let in comes before the first has written anything
        build_backbone(name, *rest)

    monkeypatch.setattr("sembench.encoders.backbones.build_backbone", build_slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: ensure(plan, plan.backbone("smoke_glove"), print), range(2)))
    assert built == ["smoke_glove"]
    assert load_encoder(opened(plan.root, plan.backbone("smoke_glove"))).readouts == ("mean",)
