//! The commands that change a cluster by calls of the operator API.
//!
//! Commands that only list what a master knows are in `read`.

pub mod agents;
mod find;
pub mod frameworks;
pub mod maintenance;
pub mod policies;
pub mod quota;
pub mod weights;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::connect::MasterArgs;

/// A call of the operator API: `body` is in the field of the call's name.
fn call(name: &str, body: &Value) -> Value {
    let mut call = Map::new();
    call.insert("type".to_owned(), json!(name));
    call.insert(name.to_lowercase(), body.clone());
    Value::Object(call)
}

/// Makes a call without an answer.
async fn order(master: &MasterArgs, name: &str, body: &Value) -> Result<()> {
    master.order(&call(name, body)).await
}

/// Makes a call without a body, and returns the field of its answer.
async fn ask(master: &MasterArgs, name: &str) -> Result<Value> {
    let mut answer: Value = master.call(&json!({ "type": name })).await?;
    Ok(answer[name.to_lowercase()].take())
}
