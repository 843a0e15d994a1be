//! Classes of priority without evictions: dropped tasks, sprints, and a model of response times. It launches nothing.
