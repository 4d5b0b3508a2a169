"""The type stubs list what the package has."""

import ast
import importlib.resources
import unittest

from feedgate_feed import _native


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


class Types(unittest.TestCase):
    def test_the_stubs_list_what_the_module_has(self) -> None:
        stubs = importlib.resources.files("feedgate_feed") / "_native.pyi"
        declared = ast.parse(stubs.read_text())
        classes = [part for part in declared.body if isinstance(part, ast.ClassDef)]
        functions = [part.name for part in declared.body if isinstance(part, ast.FunctionDef)]
        self.assertEqual(public([part.name for part in classes] + functions), public(dir(_native)))
        for part in classes:
            if part.name.endswith("Error"):
                continue
            members = [member.name for member in part.body if isinstance(member, ast.FunctionDef)]
            self.assertEqual(public(members), public(dir(getattr(_native, part.name))), part.name)

    def test_the_package_says_that_it_is_typed(self) -> None:
        self.assertTrue((importlib.resources.files("feedgate_feed") / "py.typed").is_file())
