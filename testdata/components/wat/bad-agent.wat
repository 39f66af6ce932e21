;; The same loop, which also opens sockets by itself.
(component
  (import "cosmonic:agent/models@0.3.0" (instance $models (export "open" (func (result u32)))))
  (import "wasi:sockets/tcp-create-socket@0.2.12" (instance $tcp (export "create-tcp-socket" (func (param "family" u32) (result u32)))))
  (import "cosmonic:agent/tools@0.3.0" (instance $tools (export "call" (func (param "name" u32) (result u32)))))
  (core func $list (canon lower (func $models "open")))
  (core func $call (canon lower (func $tools "call")))
  (core module $m
    (import "host" "list" (func $list (result i32)))
    (import "host" "call" (func $call (param i32) (result i32)))
    (func (export "run") (result i32) (call $call (call $list))))
  (core instance $i (instantiate $m (with "host" (instance (export "list" (func $list)) (export "call" (func $call))))))
  (func $run (result u32) (canon lift (core func $i "run")))
  (instance $x (export "run" (func $run)))
  (export "cosmonic:agent/run@0.3.0" (instance $x)))
