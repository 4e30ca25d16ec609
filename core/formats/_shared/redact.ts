import { maskKnownSecrets } from '../../log/known-secrets.ts';

/** Longest upstream sentence that is shown to a client. */
const longest = 1000;
/** Maximum number of characters that are searched. The rest is never shown, so that long inputs stay cheap. */
const readable = 4000;

const secrets: readonly (readonly [RegExp, string])[] = [
  [/\b(?:https?|wss?):\/\/[^\s"'<>)\]]+/gi, '[url]'],
  [/\barn:aws[a-z-]*:[^\s"',)]+/gi, '[account]'],
  [/\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}/g, '[account]'],
  [/\b(?:[a-z0-9-]{1,63}\.){1,5}(?:com|ai|net|org|io|dev|cn|cloud)\b(?:\/[^\s"'<>)\]]*)?/gi, '[url]'],
  [/\bBearer\s+[^\s"',;]+/gi, '[key]'],
  [/\b(?:sk|pk|rk|gsk|xai|nvapi|hf)[-_][A-Za-z0-9_*.…-]{6,}/g, '[key]'],
  [/\bAIza[A-Za-z0-9_*-]{6,}/g, '[key]'],
  [/\bya29\.[A-Za-z0-9_.-]+/g, '[key]'],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g, '[key]'],
  [/\b(?:org|proj|acct|wrkspc)[-_][A-Za-z0-9]{4,}/g, '[account]'],
  [/\b(?:user|team|account|acc|ap)[-_](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{6,}/g, '[account]'],
  [/\bprojects?\/[^\s"',/]+/g, '[account]'],
  [/\b(?:consumer ['"]?)?project_number:\d+/g, '[account]'],
  [/\b[0-9a-f]{32,128}\b/gi, '[key]'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '[id]'],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, '[address]'],
];

/** Returns a sentence of an upstream without keys, addresses and account ids, on one line and of bounded length. */
export function redact(text: string): string {
  // Runs before the text is cut, so that no part of a secret remains. Masks also the characters next to a known secret, because a longer
  // key may begin or end with a shorter one.
  let clean = maskKnownSecrets(text.slice(0, 2 * readable), '[key]')
    .replaceAll(/[\w.~+-]{0,200}\[key\][\w.~+-]{0,200}/g, '[key]')
    .slice(0, readable);
  for (const [pattern, word] of secrets) clean = clean.replaceAll(pattern, word);
  clean = clean.replaceAll(/\s+/g, ' ').trim();
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean;
}
