//! Result folders: files, schema and renderers.
