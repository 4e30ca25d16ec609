/** Returns the two halves of a key that is written `access|secret`. Throws when it has not two. */
export function halves(key: string): readonly [access: string, secret: string] {
  const [access = '', secret = '', ...more] = key.split('|').map((half) => half.trim());
  if (access === '' || secret === '' || more.length > 0)
    throw new Error('its key must be written as ACCESS|SECRET, with both halves of it.');
  return [access, secret];
}
