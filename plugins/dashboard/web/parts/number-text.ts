/** Numbers as people type them into the fields of a form. */

/** Digits. Commas, spaces and underscores may separate thousands alone: a comma before decimals would multiply the number. */
const digits = String.raw`(?:\d+|\d{1,3}(?:[,_\s]\d{3})+)`;

const count = new RegExp(`^${digits}$`);

// Very small and large numbers that are stored stand in the field with an exponent.
const amount = new RegExp(String.raw`^(?:\$\s*)?(?:${digits}(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$`, 'i');

/** Form of an amount, for the problem at a field with another text. */
export const amountForm =
  'such as 1,000 or 2.50, where commas separate thousands and a point separates decimals';

/** Reads an amount of 0 or more, with or without a dollar sign. Returns undefined for any other text, the empty one too. */
export const readAmount = (text: string): number | undefined => numberIn(text.trim(), amount);

/** Reads a whole number of 0 or more. Returns undefined for any other text, the empty one too. */
export const readCount = (text: string): number | undefined => numberIn(text.trim(), count);

function numberIn(text: string, form: RegExp): number | undefined {
  const number = form.test(text) ? Number(text.replaceAll(/[$,_\s]/g, '')) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}
