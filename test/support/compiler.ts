/**
 * Options and variables of the compiler of TypeScript with which it takes half of the CPU: on one core it looks at each shared type once, and
 * a process that soon ends needs to collect little garbage (measured in November 2026).
 */
export const frugalCompiler: {
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} = { options: ['--singleThreaded'], env: { GOGC: '400' } };
