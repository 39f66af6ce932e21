;; Calls out over HTTP and asks a store for values: imports wasi:http/outgoing-handler and acme:store/kv.
(component
  (import "wasi:http/outgoing-handler@0.2.12" (instance $http (export "handle" (func (param "request" u32) (result u32)))))
  (import "acme:store/kv@1.0.0" (instance $kv (export "get" (func (param "key" u32) (result u32)))))
  (core func $handle (canon lower (func $http "handle")))
  (core func $get (canon lower (func $kv "get")))
  (core module $m
    (import "host" "handle" (func $handle (param i32) (result i32)))
    (import "host" "get" (func $get (param i32) (result i32)))
    (func (export "run") (result i32) (call $handle (call $get (i32.const 1)))))
  (core instance $i (instantiate $m (with "host" (instance
    (export "handle" (func $handle))
    (export "get" (func $get))))))
  (func (export "run") (result u32) (canon lift (core func $i "run"))))
