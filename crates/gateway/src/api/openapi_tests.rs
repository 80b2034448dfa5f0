//! Compares the OpenAPI description with the routes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::routes::TABLE;
use super::*;

fn names(parameters: Option<&Value>) -> BTreeSet<String> {
    let listed = parameters.and_then(Value::as_array).into_iter().flatten();
    listed.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_path_is_described_with_its_parameters_and_nothing_else_is() {
    let description: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            described.insert((method.to_uppercase(), path.clone(), names(operation.get("parameters"))));
            let named = path.contains('{');
            assert_eq!(names(item.get("parameters")).len(), usize::from(named), "{path}");
            assert!(operation["responses"]["default"].is_object(), "{path} says nothing of errors");
        }
    }
    let coded = TABLE.iter().map(|line| {
        let parameters = line.parameters.iter().map(|name| (*name).to_owned()).collect();
        (line.method.to_owned(), line.path.to_owned(), parameters)
    });
    let coded = coded.collect::<BTreeSet<_>>();
    assert_eq!(described, coded);
}

#[test]
fn every_schema_that_is_referred_to_is_there() {
    let description: Value = serde_json::from_str(OPENAPI).unwrap();
    let text = OPENAPI;
    for part in text.split("\"$ref\": \"#").skip(1) {
        let pointer = part.split('"').next().unwrap();
        assert!(description.pointer(pointer).is_some(), "{pointer}");
    }
}
