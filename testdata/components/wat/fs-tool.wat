;; Reads and changes files of its folder.
(component
  (type $fs (instance
    (export "descriptor" (type $d (sub resource)))
    (export "[method]descriptor.open-at" (func (param "self" (borrow $d)) (param "flags" u32) (result u32)))))
  (import "wasi:filesystem/types@0.2.12" (instance $types (type $fs)))
  (import "wasi:filesystem/preopens@0.2.12" (instance $pre (export "get-directories" (func (result u32)))))
  (core func $dirs (canon lower (func $pre "get-directories")))
  (core func $open (canon lower (func $types "[method]descriptor.open-at")))
  (core module $m
    (import "host" "dirs" (func $dirs (result i32)))
    (import "host" "open" (func $open (param i32 i32) (result i32)))
    (func (export "run") (result i32) (call $open (call $dirs) (i32.const 0))))
  (core instance $i (instantiate $m (with "host" (instance (export "dirs" (func $dirs)) (export "open" (func $open))))))
  (func (export "run") (result u32) (canon lift (core func $i "run"))))
