import { createRequire } from 'node:module';

/**
 * Throws an Error that says what to install, where an optional package is missing. Import the package behind this call, with `import()`, so
 * that operators who do not use the feature need not install it.
 *
 * @param version The major version that is used: `3`.
 * @param purpose What the package is needed for, as the end of a sentence: `export traces`.
 * @param from `import.meta.url` of the file that imports the package. Default: the gateway itself.
 * @example
 * requirePackage('@opentelemetry/sdk-trace-base', '2', 'export traces', import.meta.url);
 * const { BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
 */
export function requirePackage(name: string, version: string, purpose: string, from = import.meta.url): void {
  try {
    createRequire(from).resolve(name);
  } catch {
    throw new Error(
      `the package ${name} is missing, which it needs to ${purpose}. Install it: npm install ${name}@${version}.`,
    );
  }
}
