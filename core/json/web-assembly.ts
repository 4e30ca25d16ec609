/** As much of it as is used here: the platform's own types come with those of browsers alone. */
declare const WebAssembly: {
  readonly Module: new (code: Buffer) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** The memory of a module. `buffer` is another one after it has grown. */
export interface ModuleMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** Bytes by which the memory of a module grows. */
export const pageSize = 64 * 1024;

/** What a module exports, of its code as `npm run scanner` writes it. Takes some milliseconds: modules are made on first use. */
export function instantiate<Exports extends { readonly memory: ModuleMemory }>(code: string): Exports {
  const module = new WebAssembly.Module(Buffer.from(code, 'base64'));
  return new WebAssembly.Instance(module).exports as unknown as Exports;
}
