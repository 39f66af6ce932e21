;; Serves acme:store/kv from files: imports the filesystem with open-at and exports the store.
(component
  (type $fs (instance
    (export "descriptor" (type $d (sub resource)))
    (export "[method]descriptor.open-at" (func (param "self" (borrow $d)) (param "flags" u32) (result u32)))
    (export "[method]descriptor.read" (func (param "self" (borrow $d)) (param "length" u32) (result u32)))))
  (import "wasi:filesystem/types@0.2.12" (instance $types (type $fs)))
  (import "wasi:filesystem/preopens@0.2.12" (instance $pre (export "get-directories" (func (result u32)))))
  (core func $dirs (canon lower (func $pre "get-directories")))
  (core func $open (canon lower (func $types "[method]descriptor.open-at")))
  (core func $read (canon lower (func $types "[method]descriptor.read")))
  (core module $m
    (import "host" "dirs" (func $dirs (result i32)))
    (import "host" "open" (func $open (param i32 i32) (result i32)))
    (import "host" "read" (func $read (param i32 i32) (result i32)))
    (func (export "get") (param i32) (result i32)
      (call $read (call $open (call $dirs) (local.get 0)) (i32.const 16))))
  (core instance $i (instantiate $m (with "host" (instance
    (export "dirs" (func $dirs))
    (export "open" (func $open))
    (export "read" (func $read))))))
  (func $get (param "key" u32) (result u32) (canon lift (core func $i "get")))
  (instance $kv (export "get" (func $get)))
  (export "acme:store/kv@1.0.0" (instance $kv)))
