/** Maximum length of a name that is shown in full in the path of a dropped field. */
const longestStep = 64;

/** Returns the path of a keyword or a property inside a schema. Long names are cut. */
export function join(path: string, key: string): string {
  const step = key.length > longestStep ? `${key.slice(0, longestStep)}…` : key;
  return path === '' ? step : `${path}.${step}`;
}
