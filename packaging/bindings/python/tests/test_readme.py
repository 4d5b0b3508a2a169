"""The examples of the README do what they show."""

import doctest
import pathlib
import unittest


class Readme(unittest.TestCase):
    def test_the_examples_of_the_readme_run(self) -> None:
        readme = pathlib.Path(__file__).parent.parent / "README.md"
        found = doctest.testfile(str(readme), module_relative=False)
        self.assertGreater(found.attempted, 10)
        self.assertEqual(found.failed, 0)
