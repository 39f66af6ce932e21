;; Talks to a container daemon over HTTP: imports wasi:http/outgoing-handler and nothing else.
(component
  (import "wasi:http/outgoing-handler@0.2.12" (instance $http (export "handle" (func (param "request" u32) (result u32)))))
  (core func $handle (canon lower (func $http "handle")))
  (core module $m
    (import "host" "handle" (func $handle (param i32) (result i32)))
    (func (export "run") (result i32) (call $handle (i32.const 1))))
  (core instance $i (instantiate $m (with "host" (instance (export "handle" (func $handle))))))
  (func (export "run") (result u32) (canon lift (core func $i "run"))))
