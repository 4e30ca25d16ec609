/** As much of it as is used here: the platform's own types come with those of browsers alone. */
declare const WebAssembly: {
  readonly Module: new (code: Buffer) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** Memory of a module. `buffer` is a new object after the memory has grown. */
export interface ModuleMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** Bytes by which the memory of a module grows. */
export const pageSize = 64 * 1024;

/**
 * Returns the exports of a module from its code, which `npm run scanner` writes. Takes some milliseconds, so modules are created on first
 * use.
 */
export function instantiate<Exports extends { readonly memory: ModuleMemory }>(code: string): Exports {
  const module = new WebAssembly.Module(Buffer.from(code, 'base64'));
  return new WebAssembly.Instance(module).exports as unknown as Exports;
}
