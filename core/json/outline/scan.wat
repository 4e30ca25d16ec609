;; Reads a JSON text once and writes its outline: the same text, in which marks stand for long strings under certain names: `\f`, a 0 inside
;; of the top-level "tools" and a 1 outside of it, and five digits that count from 0 in each of the two.
;; What the outline leaves out is checked here (every escape, no bare control characters); all else is checked by whoever parses the
;; outline. UTF-8 is checked before. `index.ts` says what it is for; `npm run scanner` makes `code.ts` of this file.
;;
;; Memory, in bytes:
;;      0  results: `modelFrom`, `modelTo` (where the value of the top-level "model" stands, both 0 for none), `members` (commas at the top,
;;         plus one), `cuts` (top-level members in which something was left out), then for each of those where its name begins and ends,
;;         quotes included; at 144 how many bytes were left out, at 148 the values, at 152 where in the outline what follows the name of the
;;         top-level "tools" begins and at 156 where it ends, before the comma or the bracket behind it, both 0 for none; at 160 how many strings
;;         were left out before "tools", at 164 how many inside of it, at 168 how many in all; at 172 whether a name has an ending that is looked for
;;    256  names under which strings may be left out: each 16 bytes, the first is its length, 15 for the characters; ended by a 0
;;   1024  for each depth what is open there: 123 or 91
;;   4096  endings of names that are looked for: for the last letter of a name and the one before it (five bits each) the number of the first
;;         ending with them, from 1 on, in a byte; 0 for none
;;   5120  each ending in 32 bytes: its characters as the last of eight, bit 5 set in all (so that letters are small); a mask of the eight
;;         bytes that count; at 16 whether objects as values do not count; at 20 whether the next ending has the same two letters
;;   8192  the text, with 16 bytes of zeros behind it; the outline goes where `to` says, and where `spans` says the places of all that was
;;         left out: where each begins and ends in the text, quotes excluded
(module
  (memory (export "memory") 2)

  ;; The place of the quote that ends the string whose first character stands at $at; -1 for one that is no JSON string.
  ;; Sixteen characters are looked at in the first step, as most strings are short, and 32 in each of the others. A string that the text
  ;; breaks off ends at the zeros behind it.
  (func $stringEnd (param $at i32) (result i32)
    (local $first v128) (local $second v128) (local $marks i32) (local $byte i32)
    (local $quotes i32) (local $solidi i32) (local $controls i32) (local $codes i32) (local $escaped i32) (local $within i32)
    (local.set $first (v128.load (local.get $at)))
    (local.set $marks
      (i8x16.bitmask
        (v128.or
          (v128.or
            (i8x16.eq (local.get $first) (i8x16.splat (i32.const 34)))
            (i8x16.eq (local.get $first) (i8x16.splat (i32.const 92))))
          (i8x16.lt_u (local.get $first) (i8x16.splat (i32.const 32))))))
    (if (local.get $marks)
      (then
        (local.set $at (i32.add (local.get $at) (i32.ctz (local.get $marks))))
        (local.set $byte (i32.load8_u (local.get $at)))
        (if (i32.eq (local.get $byte) (i32.const 34)) (then (return (local.get $at))))
        (if (i32.ne (local.get $byte) (i32.const 92)) (then (return (i32.const -1)))))
      (else (local.set $at (i32.add (local.get $at) (i32.const 16)))))
    ;; The character at $at is none that was escaped. Each bit of what follows is one of 32 characters.
    (loop $next
      (local.set $first (v128.load (local.get $at)))
      (local.set $second (v128.load offset=16 (local.get $at)))
      (local.set $quotes
        (i32.or
          (i8x16.bitmask (i8x16.eq (local.get $first) (i8x16.splat (i32.const 34))))
          (i32.shl (i8x16.bitmask (i8x16.eq (local.get $second) (i8x16.splat (i32.const 34)))) (i32.const 16))))
      (local.set $solidi
        (i32.or
          (i8x16.bitmask (i8x16.eq (local.get $first) (i8x16.splat (i32.const 92))))
          (i32.shl (i8x16.bitmask (i8x16.eq (local.get $second) (i8x16.splat (i32.const 92)))) (i32.const 16))))
      (local.set $controls
        (i32.or
          (i8x16.bitmask (i8x16.lt_u (local.get $first) (i8x16.splat (i32.const 32))))
          (i32.shl (i8x16.bitmask (i8x16.lt_u (local.get $second) (i8x16.splat (i32.const 32)))) (i32.const 16))))
      (if (i32.eqz (local.get $solidi))
        (then
          (if (i32.eqz (i32.or (local.get $quotes) (local.get $controls)))
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 32)))
              (br $next)))
          (if (i32.ge_u (i32.ctz (local.get $controls)) (i32.ctz (local.get $quotes)))
            (then (return (i32.add (local.get $at) (i32.ctz (local.get $quotes))))))
          (return (i32.const -1))))
      ;; Every other reverse solidus of a row begins an escape, and the character behind it is escaped: subtracting makes each row carry
      ;; into the place behind it, as simdjson does (https://arxiv.org/abs/1902.08318, section 3.1.1).
      (local.set $codes
        (i32.xor
          (i32.sub
            (i32.or (i32.shl (local.get $solidi) (i32.const 1)) (i32.const 0xaaaaaaaa))
            (local.get $solidi))
          (i32.const 0xaaaaaaaa)))
      (local.set $escaped (i32.xor (local.get $codes) (local.get $solidi)))
      (local.set $quotes (i32.and (local.get $quotes) (i32.xor (local.get $escaped) (i32.const -1))))
      ;; What stands before the end of the string, if that is here.
      (local.set $within
        (i32.sub (i32.and (local.get $quotes) (i32.sub (i32.const 0) (local.get $quotes))) (i32.const 1)))
      (if (i32.and (local.get $controls) (local.get $within)) (then (return (i32.const -1))))
      (local.set $escaped (i32.and (local.get $escaped) (local.get $within)))
      ;; An escaped character is one of " \ / b f n r t u: the tables say by its lower half which upper halves it may have.
      (local.set $marks
        (i32.and (local.get $escaped)
          (i32.or
            (call $noEscape (local.get $first))
            (i32.shl (call $noEscape (local.get $second)) (i32.const 16)))))
      (if (local.get $marks) (then (return (i32.const -1))))
      ;; u is followed by four hexadecimal digits.
      (local.set $marks
        (i32.and (local.get $escaped)
          (i32.or
            (i8x16.bitmask (i8x16.eq (local.get $first) (i8x16.splat (i32.const 117))))
            (i32.shl (i8x16.bitmask (i8x16.eq (local.get $second) (i8x16.splat (i32.const 117)))) (i32.const 16)))))
      (block $checked
        (loop $codes
          (br_if $checked (i32.eqz (local.get $marks)))
          (local.set $byte (i32.add (local.get $at) (i32.ctz (local.get $marks))))
          (if (i32.eqz
                (i32.and
                  (i32.and (call $isHex (i32.load8_u offset=1 (local.get $byte)))
                           (call $isHex (i32.load8_u offset=2 (local.get $byte))))
                  (i32.and (call $isHex (i32.load8_u offset=3 (local.get $byte)))
                           (call $isHex (i32.load8_u offset=4 (local.get $byte))))))
            (then (return (i32.const -1))))
          (local.set $marks (i32.and (local.get $marks) (i32.sub (local.get $marks) (i32.const 1))))
          (br $codes)))
      (if (local.get $quotes)
        (then (return (i32.add (local.get $at) (i32.ctz (local.get $quotes))))))
      ;; A reverse solidus at the end is looked at once more, with what it escapes.
      (local.set $at
        (i32.add (local.get $at)
          (i32.sub (i32.const 32) (i32.shr_u (i32.and (local.get $codes) (local.get $solidi)) (i32.const 31)))))
      (br $next))
    (unreachable))

  ;; Sixteen bits: 1 for a character that stands in no escape behind its reverse solidus.
  (func $noEscape (param $block v128) (result i32)
    (i8x16.bitmask
      (i8x16.eq
        (v128.and
          (i8x16.swizzle
            (v128.const i8x16 0 0 13 0 8 8 4 0 0 0 0 0 2 0 4 1)
            (v128.and (local.get $block) (i8x16.splat (i32.const 15))))
          (i8x16.swizzle
            (v128.const i8x16 0 0 1 0 0 2 4 8 0 0 0 0 0 0 0 0)
            (i8x16.shr_u (local.get $block) (i32.const 4))))
        (i8x16.splat (i32.const 0)))))

  (func $isHex (param $byte i32) (result i32)
    (i32.or
      (i32.lt_u (i32.sub (local.get $byte) (i32.const 48)) (i32.const 10))
      (i32.lt_u (i32.sub (i32.or (local.get $byte) (i32.const 32)) (i32.const 97)) (i32.const 6))))

  ;; True when the characters from $at on are one of the names.
  (func $isNamed (param $at i32) (param $length i32) (result i32)
    (local $name i32) (local $index i32)
    (local.set $name (i32.const 256))
    (loop $names
      (if (i32.eqz (i32.load8_u (local.get $name))) (then (return (i32.const 0))))
      (if (i32.eq (i32.load8_u (local.get $name)) (local.get $length))
        (then
          (local.set $index (i32.const 0))
          (loop $characters
            (if (i32.eq (local.get $index) (local.get $length)) (then (return (i32.const 1))))
            (if (i32.eq
                  (i32.load8_u (i32.add (local.get $at) (local.get $index)))
                  (i32.load8_u offset=1 (i32.add (local.get $name) (local.get $index))))
              (then
                (local.set $index (i32.add (local.get $index) (i32.const 1)))
                (br $characters))))))
      (local.set $name (i32.add (local.get $name) (i32.const 16)))
      (br $names))
    (unreachable))

  ;; Notes whether the name has one of the endings whose last two letters are those of the $ending. $at is behind its quote.
  (func $noteEnding (param $ending i32) (param $at i32)
    (local $letters i64)
    (local.set $ending (i32.add (i32.const 5088) (i32.shl (local.get $ending) (i32.const 5))))
    (local.set $letters (i64.or (i64.load (i32.sub (local.get $at) (i32.const 9))) (i64.const 0x2020202020202020)))
    (loop $endings
      (if (i64.eq
            (i64.and (local.get $letters) (i64.load offset=8 (local.get $ending)))
            (i64.load (local.get $ending)))
        (then
          ;; A colon and a bracket behind it.
          (if (i32.eqz
                (i32.and
                  (i32.load offset=16 (local.get $ending))
                  (i32.eq (i32.load16_u (local.get $at)) (i32.const 0x7b3a))))
            (then (i32.store (i32.const 172) (i32.const 1))))))
      (if (i32.load offset=20 (local.get $ending))
        (then
          (local.set $ending (i32.add (local.get $ending) (i32.const 32)))
          (br $endings)))))

  ;; Marks the end of the value of "tools", where it is open: $at is behind the character that follows it.
  (func $endTools (param $out i32) (param $at i32) (param $uncopied i32)
    (if (i32.and (i32.ne (i32.load (i32.const 152)) (i32.const 0)) (i32.eqz (i32.load (i32.const 156))))
      (then
        (i32.store (i32.const 156)
          (i32.add (local.get $out) (i32.sub (i32.sub (local.get $at) (i32.const 1)) (local.get $uncopied)))))))

  ;; Five digits of a number.
  (func $writeDigits (param $at i32) (param $number i32)
    (local $place i32)
    (local.set $place (i32.add (local.get $at) (i32.const 5)))
    (loop $digits
      (local.set $place (i32.sub (local.get $place) (i32.const 1)))
      (i32.store8 (local.get $place) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
      (local.set $number (i32.div_u (local.get $number) (i32.const 10)))
      (br_if $digits (i32.gt_u (local.get $place) (local.get $at)))))

  ;; Notes the place of a string that is left out, and writes its mark: 10 characters.
  (func $leaveOut (param $string i32) (param $at i32) (param $out i32) (param $spans i32)
    (local $count i32) (local $inTools i32)
    (local.set $count (i32.load (i32.const 168)))
    (local.set $spans (i32.add (local.get $spans) (i32.shl (local.get $count) (i32.const 3))))
    (i32.store (local.get $spans) (i32.sub (local.get $string) (i32.const 8191)))
    (i32.store offset=4 (local.get $spans) (i32.sub (local.get $at) (i32.const 8193)))
    (i32.store (i32.const 168) (i32.add (local.get $count) (i32.const 1)))
    (local.set $inTools (i32.load (i32.const 164)))
    (if (i32.and (i32.ne (i32.load (i32.const 152)) (i32.const 0)) (i32.eqz (i32.load (i32.const 156))))
      (then
        (i32.store (local.get $out) (i32.const 0x30665c22))
        (call $writeDigits (i32.add (local.get $out) (i32.const 4)) (local.get $inTools))
        (i32.store (i32.const 164) (i32.add (local.get $inTools) (i32.const 1))))
      (else
        (i32.store (local.get $out) (i32.const 0x31665c22))
        (call $writeDigits (i32.add (local.get $out) (i32.const 4)) (i32.sub (local.get $count) (local.get $inTools)))))
    (i32.store8 offset=9 (local.get $out) (i32.const 34)))

  ;; Writes the outline of the $length bytes at 8192 to $to. Gives its length, or -1 where it does not judge: no JSON, nested deeper than
  ;; $depths (at most 3000), more than $values values, more than 16 members in which something is left out.
  (func (export "outline")
    (param $length i32) (param $to i32) (param $depths i32) (param $values i32) (param $long i32) (param $spans i32)
    (result i32)
    (local $at i32) (local $end i32) (local $byte i32) (local $depth i32) (local $expectsName i32) (local $string i32)
    (local $nameFrom i32) (local $nameTo i32) (local $topFrom i32) (local $topTo i32) (local $isCut i32)
    (local $uncopied i32) (local $out i32) (local $members i32) (local $cuts i32) (local $leftOut i32)
    (local $most i32)
    (i64.store (i32.const 0) (i64.const 0))
    (i64.store (i32.const 152) (i64.const 0))
    (i64.store (i32.const 160) (i64.const 0))
    (i64.store (i32.const 168) (i64.const 0))
    (local.set $members (i32.const 1))
    (local.set $most (local.get $values))
    (local.set $at (i32.const 8192))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (local.set $uncopied (local.get $at))
    (local.set $out (local.get $to))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (if (i32.eq (local.get $byte) (i32.const 34))
          (then
            (local.set $string (local.get $at))
            (local.set $at (call $stringEnd (i32.add (local.get $at) (i32.const 1))))
            (if (i32.eq (local.get $at) (i32.const -1)) (then (return (i32.const -1))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (if (local.get $expectsName)
              (then
                (local.set $expectsName (i32.const 0))
                (local.set $nameFrom (local.get $string))
                (local.set $nameTo (local.get $at))
                (local.set $byte
                  (i32.load8_u offset=4096
                    (i32.or
                      (i32.shl (i32.and (i32.load8_u (i32.sub (local.get $at) (i32.const 2))) (i32.const 31)) (i32.const 5))
                      (i32.and (i32.load8_u (i32.sub (local.get $at) (i32.const 3))) (i32.const 31)))))
                (if (local.get $byte) (then (call $noteEnding (local.get $byte) (local.get $at))))
                (if (i32.eq (local.get $depth) (i32.const 1))
                  (then
                    (local.set $topFrom (local.get $string))
                    (local.set $topTo (local.get $at))
                    (local.set $isCut (i32.const 0))
                    ;; "tools"
                    (if (i64.eq (i64.and (i64.load (local.get $string)) (i64.const 0xffffffffffffff)) (i64.const 0x22736c6f6f7422))
                      (then
                        (i32.store (i32.const 152)
                          (i32.add (local.get $out) (i32.sub (local.get $at) (local.get $uncopied))))
                        (i32.store (i32.const 156) (i32.const 0))
                        (i32.store (i32.const 160) (i32.load (i32.const 168))))))))
              (else
                (if (i32.gt_u (i32.sub (local.get $at) (local.get $string)) (local.get $long))
                  (then
                    (if (i32.and (i32.ge_u (local.get $depth) (i32.const 3)) (i32.ne (local.get $nameFrom) (i32.const 0)))
                      (then
                        (if (call $isNamed
                              (i32.add (local.get $nameFrom) (i32.const 1))
                              (i32.sub (i32.sub (local.get $nameTo) (local.get $nameFrom)) (i32.const 2)))
                          (then
                            (memory.copy (local.get $out) (local.get $uncopied) (i32.sub (local.get $string) (local.get $uncopied)))
                            (local.set $out (i32.add (local.get $out) (i32.sub (local.get $string) (local.get $uncopied))))
                            (call $leaveOut (local.get $string) (local.get $at) (local.get $out) (local.get $spans))
                            (local.set $out (i32.add (local.get $out) (i32.const 10)))
                            (local.set $uncopied (local.get $at))
                            (local.set $leftOut
                              (i32.add (local.get $leftOut) (i32.sub (i32.sub (local.get $at) (local.get $string)) (i32.const 2))))
                            (if (i32.eqz (local.get $isCut))
                              (then
                                (local.set $isCut (i32.const 1))
                                (if (i32.eq (local.get $cuts) (i32.const 16)) (then (return (i32.const -1))))
                                (i32.store offset=16 (i32.shl (local.get $cuts) (i32.const 3)) (local.get $topFrom))
                                (i32.store offset=20 (i32.shl (local.get $cuts) (i32.const 3)) (local.get $topTo))
                                (local.set $cuts (i32.add (local.get $cuts) (i32.const 1)))))))))))
                (if (i32.and (i32.eq (local.get $depth) (i32.const 1)) (i32.eq (i32.sub (local.get $topTo) (local.get $topFrom)) (i32.const 7)))
                  (then
                    ;; "model"
                    (if (i32.and
                          (i64.eq (i64.and (i64.load (local.get $topFrom)) (i64.const 0xffffffffffffff)) (i64.const 0x226c65646f6d22))
                          (i32.ne (local.get $nameFrom) (i32.const 0)))
                      (then
                        (i32.store (i32.const 0) (local.get $string))
                        (i32.store (i32.const 4) (local.get $at))))))))
            (br $next)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (local.get $byte) (i32.const 44)) ;; ,
          (then
            (local.set $values (i32.sub (local.get $values) (i32.const 1)))
            (local.set $nameFrom (i32.const 0))
            (local.set $expectsName (i32.eq (i32.load8_u offset=1024 (local.get $depth)) (i32.const 123)))
            (if (i32.eq (local.get $depth) (i32.const 1))
              (then
                (local.set $members (i32.add (local.get $members) (i32.const 1)))
                (call $endTools (local.get $out) (local.get $at) (local.get $uncopied))))
            (br $next)))
        (if (i32.or (i32.eq (local.get $byte) (i32.const 123)) (i32.eq (local.get $byte) (i32.const 91))) ;; { [
          (then
            (local.set $values (i32.sub (local.get $values) (i32.const 1)))
            (local.set $depth (i32.add (local.get $depth) (i32.const 1)))
            (if (i32.gt_s (local.get $depth) (local.get $depths)) (then (return (i32.const -1))))
            (i32.store8 offset=1024 (local.get $depth) (local.get $byte))
            (local.set $nameFrom (i32.const 0))
            (local.set $expectsName (i32.eq (local.get $byte) (i32.const 123)))
            (br $next)))
        (if (i32.or (i32.eq (local.get $byte) (i32.const 125)) (i32.eq (local.get $byte) (i32.const 93))) ;; } ]
          (then
            (if (i32.eqz (local.get $depth)) (then (return (i32.const -1))))
            (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))
            (if (i32.eqz (local.get $depth))
              (then (call $endTools (local.get $out) (local.get $at) (local.get $uncopied))))
            (local.set $expectsName (i32.const 0))
            (local.set $nameFrom (i32.const 0))
            (br $next)))
        (br $next)))
    (if (i32.lt_s (local.get $values) (i32.const 0)) (then (return (i32.const -1))))
    (memory.copy (local.get $out) (local.get $uncopied) (i32.sub (local.get $end) (local.get $uncopied)))
    (local.set $out (i32.add (local.get $out) (i32.sub (local.get $end) (local.get $uncopied))))
    (i32.store (i32.const 8) (local.get $members))
    (i32.store (i32.const 12) (local.get $cuts))
    (i32.store (i32.const 144) (local.get $leftOut))
    (i32.store (i32.const 148) (i32.sub (local.get $most) (local.get $values)))
    (i32.sub (local.get $out) (local.get $to)))
)
