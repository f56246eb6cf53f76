"""The catalogue is whole: every description can be read, filled and built from, and says what it brings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.stack.addon_objects import kinds_of, read_objects
from harness.stack.build import recipe
from harness.stack.component import MODULES
from harness.stack.description import FILE, Addon, Described, addons, in_order, kinds, set_aside
from harness.stack.module_files import files_of, is_taken
from harness.stack.placeholders import PLAIN, Values
from harness.stack.ports import HeldPorts

ALL = list(addons().values())
LEFT_OVER = re.compile(r"\$\{[a-z_]+(:[^}]*)?\}")
DOCS = Path(__file__).resolve().parents[3] / "docs"


def ids(described: Described) -> str:
    return described.name


def values_of(described: Described, tmp_path: Path, held: HeldPorts) -> Values:
    addon = described.addon
    known = set(PLAIN) - {"folder", "host"} - (set() if addon.hosts else {"cert", "key"})
    plain = dict.fromkeys(known, "/known")
    values = Values(described.name, tmp_path, plain, 10.0, held, {"prometheus/web": 9090})
    values.files = {name: tmp_path / name for name in (*addon.files, *addon.module_files)}
    values.secrets = {name: tmp_path / place for name, place in addon.secrets.items()}
    return values


@pytest.mark.parametrize("described", ALL, ids=ids)
def test_every_placeholder_stands_for_something(described: Described, tmp_path: Path) -> None:
    addon = described.addon
    with HeldPorts() as held:
        values = values_of(described, tmp_path, held)
        for program in addon.programs:
            texts = [values.fill(text) for text in (*program.args, *program.env.values(), program.health)]
            texts += [values.fill(text) for text in program.own_places.values()]
            assert not [text for text in texts if LEFT_OVER.search(text)]
            assert program.health.startswith("http"), "a program says by HTTP that it serves"
        for file in (*addon.files.values(), *addon.objects):
            assert not LEFT_OVER.search(values.fill((described.folder / file).read_text()))
        asked = {key for key in values.ports if key.startswith(described.name)}
        named = {api.port for api in addon.apis} | ({addon.webhooks.port} if addon.webhooks else set())
        assert {f"{described.name}/{port}" for port in named} <= asked, "a port that nobody listens on is called"


@pytest.mark.parametrize("described", ALL, ids=ids)
def test_what_it_is_built_from_is_pinned(described: Described) -> None:
    module = (described.folder / "go.mod").read_text()
    assert (described.folder / "go.sum").stat().st_size > 1000
    for component in described.components:
        assert re.search(rf"^(tool )?\s*{re.escape(component.package)}$", module, re.MULTILINE), "a tool of its go.mod"


@pytest.mark.parametrize("described", ALL, ids=ids)
def test_the_kinds_are_those_of_its_module(described: Described) -> None:
    if not described.addon.crds or not is_taken(described):
        pytest.skip("its module is not here: gpu-harness stack build " + described.name)
    assert set(kinds([described.name])) <= set(kinds_of(read_objects(files_of(described, described.addon.crds))))


@pytest.mark.parametrize("described", ALL, ids=ids)
def test_it_has_a_section_in_the_docs(described: Described) -> None:
    page = (DOCS / "stack.md").read_text()
    assert re.search(rf"^### `{described.name}`", page, re.MULTILINE)


def test_the_docs_name_each_that_is_emulated_or_played() -> None:
    page = (DOCS / "stack.md").read_text()
    aside = re.search(r"ours stands aside:(.*?)The report", page, re.DOTALL)
    played = re.search(r"`embedded: true`(.*?)\)", page, re.DOTALL)
    assert aside is not None and played is not None
    for told, wanted in ((aside, [d for d in ALL if d.addon.emulated]), (played, [d for d in ALL if d.addon.embedded])):
        assert {d.name for d in wanted} == set(re.findall(r"`([\w-]+)`", told[1])) & set(addons())


def test_what_is_needed_comes_first_and_stands_aside_too() -> None:
    assert [d.name for d in in_order(["prometheus-adapter", "karpenter"])] == [
        "prometheus", "prometheus-adapter", "karpenter",
    ]  # fmt: skip
    assert set_aside(["prometheus-adapter", "keda"]) == {"custom.metrics.k8s.io", "external.metrics.k8s.io"}
    assert set_aside([]) == frozenset()


def test_names_of_programs_are_nobody_elses() -> None:
    names = [component.name for described in ALL for component in described.components]
    assert len(names) == len(set(names))


def write(folder: Path, text: str, module: str = "require example.org/x v1.2.3\n") -> Path:
    folder.mkdir(parents=True)
    (folder / FILE).write_text(text)
    (folder / "go.mod").write_text(module)
    return folder


SMALL = """about: x
source: example.org/x
page: https://example.org
install: kubectl apply
finds: xs.example.org
programs:
  - {name: x, package: example.org/x/cmd, health: "http://h"}
"""


def test_a_description_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    assert Described(write(tmp_path / "fine", SMALL)).version == "1.2.3"
    with pytest.raises(BadInput, match=r"component.yaml:8.*'nedes' is not known.*\n.*did you mean 'needs'"):
        Described(write(tmp_path / "typo", SMALL + "nedes: [y]\n"))
    with pytest.raises(BadInput, match=r"component.yaml:2 \(source\): go.mod does not require example.org/x"):
        Described(write(tmp_path / "unpinned", SMALL, "module y\n"))


WRONG = {
    "a place of its own": ("crds: [/etc/*]", r":8 \(crds.0\): '/etc/\*' is no pattern of files in the module"),
    "above the module": ("crds: [../*]", "no pattern"),
    "no pattern": ("crds: [.]", "no pattern"),
    "a webhook's": ("namespace: n\nwebhooks: {files: [/a], service: s, port: p}", r"webhooks.files.0\): '/a' is no"),
    "a file that is gone": ("files: {a: gone.yaml}", r":8 \(files.a\): there is no file 'gone.yaml' beside it"),
    "a file elsewhere": ("files: {a: ../go.mod}", "there is no file"),
    "an object that is gone": ("objects: [gone.yaml]", r"objects.0\): there is no file 'gone.yaml'"),
    "no namespace": ("services: [a]", r"\(services\): is written, and no namespace"),
    "no namespace for webhooks": ("webhooks: {files: [a], service: s, port: p}", r"\(webhooks\): .* no namespace"),
    "somebody else's folder": ("namespace: n\nsecrets: {a: /etc/x}", "'/etc/x' is no folder in the run's own"),
    "a name with a folder": ("module_files: {a/b: [c]}", "'a/b' names a folder, too"),
    "a name twice": (f"module_files: {{a: [c]}}\nfiles: {{a: {FILE}}}", "'a' is in `files` as well"),
    "health: no URL": ("health: nonsense", r"programs.0.health\): 'nonsense' is no URL"),
    "health: no port": ("health: 'http://h:abc'", "is no URL"),
    "no such file": (
        "args: ['${file:a}'], health:",
        r"args.0\): \$\{file:a\}: 'a' is not among its files: it has none",
    ),
    "no such secret": ("env: {A: '${secret:a}'}, health:", r"env.A\): .*'a' is not among its secrets"),
    "no time": ("args: ['${scenario:soon}'], health:", "'soon' is no number of seconds"),
    "a port of nobody": ("args: ['${port:y/web}'], health:", "'y' is not among `needs`"),
    "no certificate": ("args: ['${cert}'], health:", "no certificate is made without `hosts`"),
    "no argument": ('args: ["a\\0b"], health:', "a byte 0"),
    "no variable": ("env: {A=B: c}, health:", "'A=B' is no name of a variable"),
    "Kubernetes' own": ("name: etcd", "'etcd' is a program of Kubernetes' own"),
}


@pytest.mark.parametrize(("text", "says"), WRONG.values(), ids=WRONG)
def test_what_could_only_fail_once_programs_start_is_told_before(tmp_path: Path, text: str, says: str) -> None:
    if text.startswith("health:"):
        written = SMALL.replace('health: "http://h"', text)
    elif text.startswith("name:"):
        written = SMALL.replace("name: x", text)
    elif text.endswith("health:"):
        written = SMALL.replace("health:", text)
    else:
        written = f"{SMALL}{text}\n"
    with pytest.raises(BadInput, match=says):
        Described(write(tmp_path / "x", written))


def test_a_folder_without_its_pins_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", SMALL)
    with pytest.raises(BadInput, match=r"go.sum: there is no such file\n.*go mod tidy"):
        recipe(Described(folder).components[0])
    (folder / "go.mod").write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"go.mod: cannot be read: is not UTF-8 text"):
        Described(folder)
    (folder / "go.mod").unlink()
    with pytest.raises(BadInput, match=r"go.mod: cannot be read: No such file"):
        Described(folder)


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "7\n"])
def test_objects_that_are_none_are_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "o.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"o.yaml: (is no YAML|holds)"):
        read_objects([tmp_path / "o.yaml"])


def test_a_circle_of_needs_is_told(tmp_path: Path) -> None:
    known = {name: Described(write(tmp_path / name, SMALL + f"needs: [{other}]\n")) for name, other in ("ab", "ba")}
    with pytest.raises(BadInput, match="in a circle: a -> b -> a"):
        in_order(["a"], known)


def test_the_folder_is_all_that_it_takes() -> None:
    assert {d.folder for d in ALL} == {path.parent for path in MODULES.glob(f"*/{FILE}")}
    assert all(isinstance(d.addon, Addon) for d in ALL)


def test_the_example_in_the_docs_is_the_real_one(tmp_path: Path) -> None:
    page = (DOCS / "adding-a-component.md").read_text()
    module, text = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("", "yaml"))
    assert module is not None and text is not None
    assert text.group(1) == (MODULES / "kwok" / FILE).read_text()
    followed = Described(write(tmp_path / "kwok", text.group(1), module.group(1)))
    assert (followed.version, [c.name for c in followed.components]) == (addons()["kwok"].version, ["kwok"])
    keys = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    assert keys <= set(Addon.model_fields) | {"exits", "everywhere", "own_places"}
