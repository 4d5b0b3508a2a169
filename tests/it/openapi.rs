//! The OpenAPI document (`schemas/openapi.json`) describes the calls that the router has, and no
//! others; and the program answers as it says.

mod client_names;
mod fuzzed;
mod generated;
mod page;
mod paths;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The methods of HTTP that an operation may have.
const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program that the test runner has installed beside the Python of the tests, or that Python.
fn python_program(name: &str) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let python = std::env::var("FEEDGATE_TEST_PYTHON");
    let python = python.expect("tests/run installs packages and sets FEEDGATE_TEST_PYTHON");
    Path::new(&python).with_file_name(name)
}

/// Reads the document as it is in the repository.
fn document() -> Value {
    let text = fs::read_to_string(root().join("schemas/openapi.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The part of the document that is meant: a reference leads to another one.
fn resolved<'d>(document: &'d Value, part: &'d Value) -> &'d Value {
    match part["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.strip_prefix('#').unwrap();
            document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => part,
    }
}

/// Each path of the document, with its methods in capital letters and their operations.
fn operations(document: &Value) -> Vec<(&str, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let mut operations = Vec::new();
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                operations.push((path.as_str(), method.to_uppercase(), operation));
            }
        }
    }
    operations
}

#[test]
fn each_error_refers_to_the_codes_of_the_page_of_errors() {
    let document = document();
    let errors = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let mut wrong = Vec::new();
    for (path, method, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolved(&document, response);
            let codes = response["x-codes"].as_array().cloned().unwrap_or_default();
            if codes.is_empty() == (status.as_str() >= "400") {
                wrong.push(format!("{method} {path} {status}: only errors have x-codes"));
            }
            for code in codes {
                let code = code.as_str().unwrap();
                if !errors.contains(&format!("`{code}`")) {
                    wrong.push(format!("{method} {path} {status}: docs/errors.md has no `{code}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_reference_leads_somewhere() {
    fn check(document: &Value, part: &Value) {
        resolved(document, part);
        match part {
            Value::Object(members) => members.values().for_each(|part| check(document, part)),
            Value::Array(items) => items.iter().for_each(|part| check(document, part)),
            _ => {}
        }
    }
    let document = document();
    check(&document, &document);
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
