/**
 * Detectors of personal data: payment cards, bank accounts, national identification numbers, e-mail addresses, phone numbers and IP addresses.
 * Check digits are verified.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { digitsOf, passesLuhn, passesMod1110, passesVerhoeff, remainder, weightedMod11 } from './numbers.ts';

/** A kind of entity: a pattern, and a function that rejects matches that are none. */
export interface Detector {
  /** Label in its placeholders. */
  readonly label: string;
  /** Pattern in the syntax of `parsePattern`. */
  readonly pattern: string;
  readonly ignoreCase?: boolean;
  /** Publication of the rule, and the implementations that it was compared with. */
  readonly source: string;
  validate?(match: string): boolean;
}

/*
 * Rules and examples were compared with python-stdnum (https://github.com/arthurdejong/python-stdnum, commit 006192e5) and with the recognizers
 * of Microsoft Presidio (https://github.com/microsoft/presidio, commit 0aa9f8e4).
 */

/** Lengths of IBANs by country (SWIFT, IBAN Registry, release 101). */
const ibanLengths: Readonly<Record<string, number>> = Object.fromEntries(
  `AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30`
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

/**
 * Beginnings of card numbers by issuer, and their lengths. Not those of UATP (1, 15 digits), because a tenth of all numbers like that would be
 * one, nor of Dankort and others whose numbers are among those of Visa and Maestro.
 */
const issuers: readonly { readonly begin: RegExp; readonly lengths: readonly number[] }[] = [
  // Visa
  { begin: /^4/, lengths: [13, 16, 19] },
  // American Express
  { begin: /^3[47]/, lengths: [15] },
  // Diners Club
  { begin: /^3(?:0[0-5]|095|[689])/, lengths: [14, 15, 16, 17, 18, 19] },
  // JCB
  { begin: /^35(?:2[89]|[3-8])/, lengths: [16, 17, 18, 19] },
  // Mastercard
  { begin: /^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, lengths: [16] },
  // Mir
  { begin: /^220[0-4]/, lengths: [16, 17, 18, 19] },
  // Maestro, and in the same range Discover, UnionPay, RuPay, InterPayment and Verve
  { begin: /^(?:50|5[6-9]|6)/, lengths: [12, 13, 14, 15, 16, 17, 18, 19] },
  // UnionPay and RuPay
  { begin: /^8[12]/, lengths: [16, 17, 18, 19] },
  // UzCard, Humo, Napas and Troy
  { begin: /^(?:8600|9860|9704|9792)/, lengths: [16, 19] },
];

function isCard(match: string): boolean {
  const digits = digitsOf(match);
  if (!passesLuhn(digits)) return false;
  const text = digits.join('');
  if (/^(\d)\1+$/.test(text)) return false;
  return issuers.some(({ begin, lengths }) => lengths.includes(text.length) && begin.test(text));
}

function isIban(match: string): boolean {
  const text = match.replaceAll(/[ .-]/g, '').toUpperCase();
  if (ibanLengths[text.slice(0, 2)] !== text.length) return false;
  const moved = text.slice(4) + text.slice(0, 4);
  const decimal = moved.replaceAll(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  return remainder(decimal, 97) === 1;
}

function isSsn(match: string): boolean {
  const [area = '', group, serial] = match.split(/[-. ]/);
  return !/^(?:000|666|9)/.test(area) && group !== '00' && serial !== '0000';
}

function isNino(match: string): boolean {
  const prefix = match.slice(0, 2).toUpperCase();
  if (/^[DFIQUV]|^.[DFIOQUV]/.test(prefix)) return false;
  return !['BG', 'GB', 'KN', 'NK', 'NT', 'TN', 'ZZ'].includes(prefix);
}

function isSteuerId(match: string): boolean {
  const digits = digitsOf(match);
  if (digits[0] === 0) return false;
  const counts = Array.from(
    { length: 10 },
    (_, digit) => digits.slice(0, 10).filter((one) => one === digit).length,
  );
  const repeated = counts.filter((count) => count > 1);
  const isAllowed = repeated.length === 1 && (repeated[0] === 2 || repeated[0] === 3);
  return isAllowed && passesMod1110(digits);
}

function isNir(match: string): boolean {
  const text = match.replaceAll(' ', '').toUpperCase();
  const month = Number(text.slice(3, 5));
  if (month === 0 || (month > 12 && month < 20) || (month > 42 && month < 50)) return false;
  // Corsica: the key is that of 19 and 18.
  const decimal = text.slice(0, 13).replace('2A', '19').replace('2B', '18');
  return /^\d{13}$/.test(decimal) && 97 - remainder(decimal, 97) === Number(text.slice(13));
}

function isDni(match: string): boolean {
  const text = match.replaceAll('-', '').toUpperCase();
  const number = text.slice(0, -1).replace(/^[XYZ]/, (letter) => String('XYZ'.indexOf(letter)));
  return 'TRWAGMYFPDXBNJZSQVHLCKE'[Number(number) % 23] === text.at(-1);
}

/** Values of characters at odd places; digits first. */
const oddValues = [
  1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
];

function isCodiceFiscale(match: string): boolean {
  const text = match.toUpperCase();
  let sum = 0;
  for (let index = 0; index < 15; index += 1) {
    const unit = text.charCodeAt(index);
    const value = unit < 65 ? unit - 48 : unit - 65;
    sum += index % 2 === 0 ? (oddValues[value] ?? 0) : value;
  }
  return String.fromCharCode(65 + (sum % 26)) === text[15];
}

function isCpf(match: string): boolean {
  const digits = digitsOf(match);
  if (new Set(digits).size === 1) return false;
  return weightedMod11(digits.slice(0, 9)) === digits[9] && weightedMod11(digits.slice(0, 10)) === digits[10];
}

/** Palindromes are never assigned. */
function isAadhaar(match: string): boolean {
  const digits = digitsOf(match);
  return passesVerhoeff(digits) && digits.join() !== digits.toReversed().join();
}

function isInternationalPhone(match: string): boolean {
  const { length } = digitsOf(match);
  return length >= 8 && length <= 15;
}

function isAddressV6(match: string): boolean {
  return isIPv6(match) && /\d/.test(match) && match.split(':').filter((group) => group !== '').length > 1;
}

/** Detectors by the names that options use. Where two match the same text the first wins. */
export const personDetectors = {
  card: {
    label: 'CARD',
    pattern: String.raw`(?<!\d)\d{3,}(?:[ -]\d{3,}){0,5}(?:[ -]\d{1,2})?(?!\d)`,
    source:
      'ISO/IEC 7812-1 (Luhn); beginnings and lengths: https://en.wikipedia.org/wiki/Payment_card_number#Issuer_identification_number_(IIN)',
    validate: isCard,
  },
  iban: {
    label: 'IBAN',
    pattern: String.raw`(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ .-]?[A-Z0-9]){11,30}(?![A-Za-z0-9])`,
    ignoreCase: true,
    source:
      'ISO 13616-1 and the IBAN Registry, release 101 (https://www.swift.com/standards/data-standards/iban); stdnum/iban.dat',
    validate: isIban,
  },
  'us-ssn': {
    label: 'US_SSN',
    pattern: String.raw`(?<![\w-])\d{3}(?:-\d{2}-| \d{2} |\.\d{2}\.)\d{4}(?![\w])`,
    source:
      'https://www.ssa.gov/employer/randomization.html: no 000, 666, 9xx, no group 00, no serial 0000; stdnum/us/ssn.py; us_ssn_recognizer.py',
    validate: isSsn,
  },
  'uk-nino': {
    label: 'UK_NINO',
    pattern: String.raw`(?<![A-Za-z0-9])[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D](?![A-Za-z0-9])`,
    ignoreCase: true,
    source: 'HMRC, National Insurance Manual, NIM39110; uk_nino_recognizer.py',
    validate: isNino,
  },
  'de-steuer-id': {
    label: 'DE_STEUER_ID',
    pattern: String.raw`(?<!\d)\d{2} ?\d{3} ?\d{3} ?\d{3}(?!\d)`,
    source:
      'BZSt, Steuerliche Identifikationsnummer; § 139b AO; ISO/IEC 7064 MOD 11,10; one digit two or three times: stdnum/de/idnr.py',
    validate: isSteuerId,
  },
  'fr-nir': {
    label: 'FR_NIR',
    pattern: String.raw`(?<!\d)[1-478] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?!\d)`,
    ignoreCase: true,
    source: 'INSEE, https://www.insee.fr/fr/metadonnees/definition/c1409; stdnum/fr/nir.py',
    validate: isNir,
  },
  'es-dni': {
    label: 'ES_DNI',
    pattern: String.raw`(?<![A-Za-z0-9])(?:\d{8}|[XYZ]-?\d{7})-?[A-Z](?![A-Za-z0-9])`,
    ignoreCase: true,
    source:
      'Real Decreto 1553/2005; letter: Ministerio del Interior, cálculo del dígito de control del NIF/NIE; stdnum/es/dni.py and nie.py',
    validate: isDni,
  },
  'it-codice-fiscale': {
    label: 'IT_CODICE_FISCALE',
    pattern: String.raw`(?<![A-Za-z0-9])[A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z](?![A-Za-z0-9])`,
    ignoreCase: true,
    source: 'Decreto ministeriale 23 dicembre 1976, n. 13813; stdnum/it/codicefiscale.py',
    validate: isCodiceFiscale,
  },
  'br-cpf': {
    label: 'BR_CPF',
    pattern: String.raw`(?<!\d)\d{3}\.?\d{3}\.?\d{3}-?\d{2}(?!\d)`,
    source: 'Receita Federal, Cadastro de Pessoas Físicas: two check digits modulo 11; stdnum/br/cpf.py',
    validate: isCpf,
  },
  'in-aadhaar': {
    label: 'IN_AADHAAR',
    pattern: String.raw`(?<!\d)[2-9]\d{3}[ :-]?\d{4}[ :-]?\d{4}(?!\d)`,
    source: 'UIDAI, A UID Numbering Scheme (Verhoeff); stdnum/in_/aadhaar.py; in_aadhaar_recognizer.py',
    validate: isAadhaar,
  },
  email: {
    label: 'EMAIL',
    pattern: String.raw`(?<![\p{L}\p{N}._%+'-])[\p{L}\p{N}._%+'-]+@(?:[\p{L}\p{N}-]+\.)+(?:\p{L}{2,63}|[xX][nN]--[A-Za-z0-9-]{2,59})`,
    source:
      'RFC 5322 and RFC 6531, without quoted local parts and the signs !#$&*/=?^`{|}~; RFC 3490; email_recognizer.py',
  },
  phone: {
    label: 'PHONE',
    pattern: String.raw`(?<![\w+])(?:\+|00)\d(?:[ ().\/-]{0,2}\d){6,15}(?!\d)`,
    source: 'ITU-T E.164: + or 00, and at most 15 digits',
    validate: (match) => isInternationalPhone(match.replace(/^00/, '')),
  },
  'phone-us': {
    label: 'PHONE',
    pattern: String.raw`(?<![\w-])(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}(?!\d)`,
    source: 'North American Numbering Plan: NXX-NXX-XXXX, where N is 2 to 9',
  },
  ip: {
    label: 'IP',
    pattern: String.raw`(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)|(?<![\w:.])[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?![\w:])`,
    source: 'RFC 791 and RFC 4291; ip_recognizer.py. Not ::1, which is nobody’s',
    validate: (match) => isIPv4(match) || isAddressV6(match),
  },
} satisfies Readonly<Record<string, Detector>>;
