;; Queries a database that the host dials.
(component
  (import "wasmcloud:postgres/query@0.1.1-draft" (instance $pg (export "query" (func (param "q" u32) (result u32)))))
  (core func $query (canon lower (func $pg "query")))
  (core module $m
    (import "host" "query" (func $query (param i32) (result i32)))
    (func (export "run") (result i32) (call $query (i32.const 1))))
  (core instance $i (instantiate $m (with "host" (instance (export "query" (func $query))))))
  (func (export "run") (result u32) (canon lift (core func $i "run"))))
