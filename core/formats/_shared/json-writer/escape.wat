;; Writes a text as it stands between the quotes of a JSON string. `index.ts` says what it is for; `npm run scanner` makes `code.ts` of this
;; file.
;;
;; Memory, in bytes:
;;      0  for each character below 128 eight bytes: how it is written, at most six characters, and in the last byte how many those are
;;   1024  the text in UTF-8, with room for 16 bytes behind it; what is written goes where `to` says, with as much room
(module
  (memory (export "memory") 1)

  ;; Writes the $length bytes at 1024 to $to and gives how many that are: those that need no escape sixteen at a time.
  (func (export "escape") (param $length i32) (param $to i32) (result i32)
    (local $at i32) (local $end i32) (local $out i32) (local $block v128) (local $marks i32) (local $entry i32)
    (local.set $at (i32.const 1024))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (local.set $out (local.get $to))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $block (v128.load (local.get $at)))
        (v128.store (local.get $out) (local.get $block))
        (local.set $marks
          (i8x16.bitmask
            (v128.or
              (v128.or
                (i8x16.eq (local.get $block) (v128.const i8x16 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34))
                (i8x16.eq (local.get $block) (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92)))
              (i8x16.lt_u (local.get $block) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32)))))
        (if (i32.eqz (local.get $marks))
          (then
            (local.set $at (i32.add (local.get $at) (i32.const 16)))
            (local.set $out (i32.add (local.get $out) (i32.const 16)))
            (br $next)))
        (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $marks))))
        (local.set $out (i32.add (local.get $out) (i32.ctz (local.get $marks))))
        ;; What is marked may stand behind the text.
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $entry (i32.shl (i32.load8_u (local.get $at)) (i32.const 3)))
        (i64.store (local.get $out) (i64.load (local.get $entry)))
        (local.set $out (i32.add (local.get $out) (i32.load8_u offset=7 (local.get $entry))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    ;; As much as was read beyond the end was written too.
    (i32.sub (i32.sub (local.get $out) (local.get $to)) (i32.sub (local.get $at) (local.get $end))))
)
