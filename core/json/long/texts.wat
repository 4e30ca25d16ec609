;; Writes texts as they stand between the quotes of JSON strings, and JSON in ASCII alone. `index.ts` says what it is for; `npm run scanner`
;; makes `code.ts` of this file.
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

  ;; Writes the $length bytes of JSON at 1024 to $to with every character beyond ASCII as an escape, and gives how many bytes that are. What
  ;; it reads must be UTF-8.
  (func (export "spell") (param $length i32) (param $to i32) (result i32)
    (local $at i32) (local $end i32) (local $out i32) (local $block v128) (local $marks i32) (local $byte i32) (local $code i32)
    (local.set $at (i32.const 1024))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (local.set $out (local.get $to))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $block (v128.load (local.get $at)))
        (v128.store (local.get $out) (local.get $block))
        (local.set $marks (i8x16.bitmask (local.get $block)))
        (if (i32.eqz (local.get $marks))
          (then
            (local.set $at (i32.add (local.get $at) (i32.const 16)))
            (local.set $out (i32.add (local.get $out) (i32.const 16)))
            (br $next)))
        (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $marks))))
        (local.set $out (i32.add (local.get $out) (i32.ctz (local.get $marks))))
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (if (i32.lt_u (local.get $byte) (i32.const 0xe0))
          (then
            (local.set $code
              (i32.or (i32.shl (i32.and (local.get $byte) (i32.const 0x1f)) (i32.const 6)) (call $six (local.get $at) (i32.const 1))))
            (local.set $at (i32.add (local.get $at) (i32.const 2))))
          (else
            (if (i32.lt_u (local.get $byte) (i32.const 0xf0))
              (then
                (local.set $code
                  (i32.or
                    (i32.or (i32.shl (i32.and (local.get $byte) (i32.const 0x0f)) (i32.const 12))
                            (i32.shl (call $six (local.get $at) (i32.const 1)) (i32.const 6)))
                    (call $six (local.get $at) (i32.const 2))))
                (local.set $at (i32.add (local.get $at) (i32.const 3))))
              (else
                ;; Two halves: the first stands for the upper ten bits.
                (local.set $code
                  (i32.sub
                    (i32.or
                      (i32.or (i32.shl (i32.and (local.get $byte) (i32.const 0x07)) (i32.const 18))
                              (i32.shl (call $six (local.get $at) (i32.const 1)) (i32.const 12)))
                      (i32.or (i32.shl (call $six (local.get $at) (i32.const 2)) (i32.const 6))
                              (call $six (local.get $at) (i32.const 3))))
                    (i32.const 0x10000)))
                (call $unit (local.get $out) (i32.or (i32.shr_u (local.get $code) (i32.const 10)) (i32.const 0xd800)))
                (local.set $out (i32.add (local.get $out) (i32.const 6)))
                (local.set $code (i32.or (i32.and (local.get $code) (i32.const 0x3ff)) (i32.const 0xdc00)))
                (local.set $at (i32.add (local.get $at) (i32.const 4)))))))
        (call $unit (local.get $out) (local.get $code))
        (local.set $out (i32.add (local.get $out) (i32.const 6)))
        (br $next)))
    (i32.sub (i32.sub (local.get $out) (local.get $to)) (i32.sub (local.get $at) (local.get $end))))

  ;; The six bits that a byte behind the first of a character carries.
  (func $six (param $at i32) (param $offset i32) (result i32)
    (i32.and (i32.load8_u (i32.add (local.get $at) (local.get $offset))) (i32.const 0x3f)))

  ;; Writes \u and four hexadecimal digits.
  (func $unit (param $out i32) (param $code i32)
    (i32.store16 (local.get $out) (i32.const 0x755c))
    (i32.store8 offset=2 (local.get $out) (call $digit (i32.shr_u (local.get $code) (i32.const 12))))
    (i32.store8 offset=3 (local.get $out) (call $digit (i32.and (i32.shr_u (local.get $code) (i32.const 8)) (i32.const 15))))
    (i32.store8 offset=4 (local.get $out) (call $digit (i32.and (i32.shr_u (local.get $code) (i32.const 4)) (i32.const 15))))
    (i32.store8 offset=5 (local.get $out) (call $digit (i32.and (local.get $code) (i32.const 15)))))

  (func $digit (param $value i32) (result i32)
    (i32.add
      (local.get $value)
      (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $value) (i32.const 10)))))
)
