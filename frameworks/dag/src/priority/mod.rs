//! Classes of priority without evictions (after DiAS, Middleware 2019): dropped tasks, sprints, and a model of response
//! times. It launches nothing.

mod student;

pub use student::{normal, student};
