/** The file of a backup: lines of JSON, compressed with gzip. A header, the tables with their rows, and an end with the checksum of all. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { isObject } from '../../model/json.ts';

/** The newest form of archives that this version reads, and the one that it writes. */
const form = 1;

/** Value of a column, in each kind of database. */
export type Value = string | number | null;

/** The first line of an archive. */
export interface Header {
  /** The version of Sluice that made it. */
  readonly version: string;
  readonly made: string;
  readonly kind: 'sqlite' | 'postgres';
  /** Names of the steps that the database had, which say what its tables are. */
  readonly steps: readonly string[];
}

/** A table of an archive, or what it had. */
export interface TableCount {
  readonly table: string;
  readonly rows: number;
}

/** Lines are handed on to the compression together, in characters. */
const together = 64 * 1024;

/** Writes an archive row by row. */
export class ArchiveWriter {
  readonly #gzip = createGzip();
  readonly #file: WriteStream;
  readonly #about: Omit<Header, 'steps'>;
  readonly #done: Promise<void>;
  readonly #all = createHash('sha256');
  readonly #tables: TableCount[] = [];
  #waiting = '';
  #table: { readonly name: string; rows: number; readonly hash: Hash } | undefined;

  /** The file must not exist; no other user may read it. */
  constructor(path: string, about: Omit<Header, 'steps'>) {
    this.#about = about;
    this.#file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
    this.#done = pipeline(this.#gzip, this.#file).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`The backup cannot be written: ${reason}.`, { cause: error });
    });
    this.#done.catch(() => {});
  }

  /** Writes the header. */
  start(steps: readonly string[]): void {
    this.#line({ sluice: 'backup', form, ...this.#about, steps });
  }

  begin(table: string, columns: readonly string[]): void {
    this.#table = { name: table, rows: 0, hash: createHash('sha256') };
    this.#line({ table, columns });
  }

  /** Resolves when the disk keeps up. */
  async row(values: readonly Value[]): Promise<void> {
    const text = JSON.stringify(values);
    if (this.#table !== undefined) {
      this.#table.rows += 1;
      this.#table.hash.update(text).update('\n');
    }
    this.#write(text);
    if (this.#waiting.length >= together) await this.#flush();
  }

  end(): void {
    if (this.#table === undefined) return;
    const { name: table, rows, hash } = this.#table;
    this.#line({ end: table, rows, sha256: hash.digest('hex') });
    this.#tables.push({ table, rows });
    this.#table = undefined;
  }

  /** Ends the archive. It is on the disk when this resolves. */
  async close(): Promise<readonly TableCount[]> {
    this.#line({ end: 'archive', tables: this.#tables.length, sha256: this.#all.copy().digest('hex') });
    await this.#flush();
    this.#gzip.end();
    await this.#done;
    return this.#tables;
  }

  /** Gives the archive up. Resolves when its file is closed. */
  async destroy(): Promise<void> {
    this.#gzip.destroy();
    this.#file.destroy();
    await this.#done.catch(() => {});
    if (!this.#file.closed) await once(this.#file, 'close');
  }

  #line(value: object): void {
    this.#write(JSON.stringify(value));
  }

  #write(text: string): void {
    this.#all.update(text).update('\n');
    this.#waiting += `${text}\n`;
  }

  async #flush(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = '';
    if (this.#gzip.write(text)) return;
    // A stream that was destroyed emits no "drain".
    if (this.#gzip.destroyed) await this.#done;
    else await once(this.#gzip, 'drain').catch(() => this.#done);
  }
}

/** Parts of an archive, in their order. */
export type ArchivePart =
  | { readonly kind: 'header'; readonly header: Header }
  | { readonly kind: 'table'; readonly table: string; readonly columns: readonly string[] }
  | { readonly kind: 'row'; readonly values: readonly Value[] }
  | { readonly kind: 'end'; readonly table: string; readonly rows: number };

/**
 * Reads an archive. Throws an Error for the operator where it is none, was cut off or changed, or has a form that is newer. What comes before
 * that may be wrong: read an archive to its end before anything of it counts.
 */
export async function* readArchive(path: string): AsyncGenerator<ArchivePart, void> {
  const bad = (what: string): Error => new Error(`${path} cannot be restored: ${what}.`);
  const all = createHash('sha256');
  let hash = createHash('sha256');
  let [rows, tables, isOver] = [0, 0, false];
  for await (const line of linesOf(path)) {
    if (isOver) throw bad('something follows its end');
    const value = parsedLine(line);
    if (isObject(value) && value['end'] === 'archive') {
      if (value['sha256'] !== all.digest('hex') || value['tables'] !== tables)
        throw bad('its checksum is wrong, because it was changed or damaged');
      isOver = true;
      continue;
    }
    all.update(line).update('\n');
    if (Array.isArray(value)) {
      rows += 1;
      hash.update(line).update('\n');
      yield { kind: 'row', values: value as Value[] };
    } else if (!isObject(value)) throw bad('it is no backup of Sluice, or it is damaged');
    else if (value['sluice'] === 'backup') {
      if (Number(value['form']) > form)
        throw bad(`Sluice ${String(value['version'])} made it in a newer form. Restore it with that version`);
      yield { kind: 'header', header: value as unknown as Header };
    } else if (typeof value['table'] === 'string') {
      [rows, hash] = [0, createHash('sha256')];
      yield { kind: 'table', table: value['table'], columns: value['columns'] as string[] };
    } else {
      if (value['rows'] !== rows || value['sha256'] !== hash.digest('hex'))
        throw bad(`the rows of ${String(value['end'])} are not those that were saved`);
      tables += 1;
      yield { kind: 'end', table: String(value['end']), rows };
    }
  }
  if (!isOver) throw bad('its end is missing: it was cut off');
}

async function* linesOf(path: string): AsyncGenerator<string, void> {
  const file = createReadStream(path);
  const gunzip = createGunzip();
  file.on('error', (error) => gunzip.destroy(error));
  file.pipe(gunzip);
  const decoder = new TextDecoder();
  let rest: string[] = [];
  try {
    for await (const chunk of gunzip) {
      const pieces = decoder.decode(chunk as Buffer, { stream: true }).split('\n');
      for (const [index, piece] of pieces.entries()) {
        if (index > 0) {
          yield rest.join('');
          rest = [];
        }
        rest.push(piece);
      }
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${path} cannot be read as a backup: ${reason}.`, { cause: error });
  } finally {
    file.destroy();
  }
  if (rest.join('') !== '') yield rest.join('');
}

/** Returns the value of a line of JSON; undefined for other text. */
function parsedLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

/** Waits until a file is on the disk. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
