/** Check digits of numbers, as their publishers define them. */

/** Returns the digits of a text as numbers. */
export function digitsOf(text: string): readonly number[] {
  const digits: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 48;
    if (digit >= 0 && digit <= 9) digits.push(digit);
  }
  return digits;
}

/** Checks digits with the Luhn formula (ISO/IEC 7812-1, annex B). */
export function passesLuhn(digits: readonly number[]): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) {
    const digit = digits[digits.length - 1 - index] ?? 0;
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

const d5 = [
  '0123456789',
  '1234067895',
  '2340178956',
  '3401289567',
  '4012395678',
  '5987604321',
  '6598710432',
  '7659821043',
  '8765932104',
  '9876543210',
];
const permuted = [
  '0123456789',
  '1576283094',
  '5803796142',
  '8916043527',
  '9453126870',
  '4286573901',
  '2793806415',
  '7046913258',
];

/** Returns true if the digits pass Verhoeff's scheme (J. Verhoeff, Error Detecting Decimal Codes, 1969). */
export function passesVerhoeff(digits: readonly number[]): boolean {
  let check = 0;
  for (const [index, digit] of digits.toReversed().entries())
    check = Number(d5[check]?.[Number(permuted[index % 8]?.[digit])]);
  return check === 0;
}

/** Returns true if the last digit checks the others: ISO/IEC 7064, MOD 11,10. */
export function passesMod1110(digits: readonly number[]): boolean {
  let product = 10;
  for (const digit of digits.slice(0, -1)) {
    const sum = (digit + product) % 10 || 10;
    product = (sum * 2) % 11;
  }
  return (11 - product) % 10 === digits.at(-1);
}

/** Returns the remainder of a long decimal number. */
export function remainder(decimal: string, divisor: number): number {
  let rest = 0;
  for (const unit of decimal) rest = (rest * 10 + Number(unit)) % divisor;
  return rest;
}

/** Returns a digit that is the weighted sum of others modulo 11, where 10 counts as 0 (CPF). */
export function weightedMod11(digits: readonly number[]): number {
  const sum = digits.reduce((total, digit, index) => total + digit * (digits.length + 1 - index), 0);
  return ((sum * 10) % 11) % 10;
}
