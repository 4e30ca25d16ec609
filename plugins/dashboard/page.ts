/** Reads the built page of the dashboard into memory. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

/** File of the built page, ready to be sent. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** The same, compressed; absent where compressing does not pay. */
  readonly gzip?: Buffer;
  readonly etag: string;
  /** True when the name changes with the content. */
  readonly hashed: boolean;
}

/** Files of the built page by paths below `/dashboard/`. Only these files can be requested, whatever the path. */
export type Page = ReadonlyMap<string, PageFile>;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** Reads the built page into memory; undefined when it was not built. Files of kinds that a page does not have are left out. */
export async function readPage(folder: string): Promise<Page | undefined> {
  const names = await readdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const files = await Promise.all(
    names.flatMap((name) => {
      const type = types[extname(name)];
      return type === undefined ? [] : [readOne(folder, name, type, names)];
    }),
  );
  const page = new Map(files);
  return page.has('index.html') ? page : undefined;
}

async function readOne(
  folder: string,
  name: string,
  type: string,
  names: readonly string[],
): Promise<[string, PageFile]> {
  const path = name.replaceAll('\\', '/');
  const bytes = await readFile(join(folder, name));
  const gzip = names.includes(`${name}.gz`) ? await readFile(join(folder, `${name}.gz`)) : undefined;
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return [
    path,
    { type, bytes, ...(gzip !== undefined && { gzip }), etag, hashed: path.startsWith('assets/') },
  ];
}
