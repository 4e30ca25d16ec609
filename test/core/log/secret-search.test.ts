import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { SecretSearch, shortest } from '../../../core/log/secret-search.ts';

/** Masks by looking for each text at each place. */
function maskedOneByOne(text: string, secrets: Iterable<string>): string {
  const hidden = Array.from(text, () => false);
  for (const secret of secrets)
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1))
      hidden.fill(true, at, at + secret.length);
  let masked = '';
  for (let at = 0; at < text.length; at += 1) {
    if (!hidden[at]) masked += text[at];
    else if (at === 0 || !hidden[at - 1]) masked += '…';
  }
  return masked;
}

// Few letters, so that secrets occur in the text, in each other, and overlap.
const letters = fc.constantFrom('a', 'b', 'é', '"');
const secret = fc.string({ unit: letters, minLength: shortest, maxLength: 12 });
const piece = fc.string({ unit: letters, maxLength: 20 });

test('no secret is left in a line, whichever others are hidden, and nothing else is masked', () => {
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 6 }),
      fc.array(fc.tuple(piece, fc.nat(5)), { maxLength: 6 }),
      (secrets, pieces) => {
        const text = pieces.map(([other, which]) => `${other}${secrets[which % secrets.length]}`).join('-');
        const search = new SecretSearch();
        for (const one of secrets) search.add(one);
        // Secrets that touch are masked one by one, which makes no difference to a reader.
        const oneMask = (line: string): string => line.replaceAll(/…+/g, '…');
        expect(oneMask(search.mask(text, '…'))).toBe(maskedOneByOne(text, secrets));
      },
    ),
  );
});

test('secrets that begin alike are masked by the longest that stands there', () => {
  const search = new SecretSearch();
  search.add('password');
  const keys = Array.from({ length: 1_000 }, (_, at) => `sk-proj-${at}`);
  for (const key of keys) search.add(key);
  expect(search.mask('sk-proj-77 sk-proj-777, sk-proj-7x', '…')).toBe('… …, …x');
  for (const key of keys.slice(0, 10)) search.delete(key);
  expect(search.mask('sk-proj-7 and sk-proj-77', '…')).toBe('sk-proj-7 and …');
});

test('a secret that has ended is masked no more, and those that are left still are', () => {
  const search = new SecretSearch();
  const stays = 'sk-stays-where-it-is';
  search.add(stays);
  for (let at = 0; at < 500; at += 1) {
    const token = `token-${at}-of-an-hour`;
    search.add(token);
    expect(search.mask(`with ${token}, and ${stays}.`, '…')).toBe('with …, and ….');
    search.delete(token);
    expect(search.mask(`with ${token}, and ${stays}.`, '…')).toBe(`with ${token}, and ….`);
  }
});

test('a text of fewer than eight characters is not masked', () => {
  const search = new SecretSearch();
  search.add('seven77');
  expect(search.mask('there are seven77', '…')).toBe('there are seven77');
});
