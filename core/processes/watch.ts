/** Watches the files of a config, with the watching of Node. */
import { existsSync, watch, type FSWatcher } from 'node:fs';
import { dirname, join } from 'node:path';

/** Silence after the last change before something is done about it, in milliseconds: editors write a file in several steps. */
const settleTime = 250;

/** Scripts and data that scripts import. */
const scripts = /\.(ts|mts|js|mjs|json)$/;

/** Watches a config, what stands beside it, and `plugins/` and `channels/` there. */
export class Watch {
  readonly #changed: () => void;
  readonly #root: string;
  #timer: NodeJS.Timeout | undefined;
  #watchers: FSWatcher[] = [];
  #folders: readonly string[] = [];

  /** `changed` runs once for changes that come close together. */
  constructor(file: string, changed: () => void) {
    this.#changed = changed;
    this.#root = dirname(file);
    this.#watch();
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #watch(): void {
    this.#folders = this.#present();
    this.#watchers = [
      this.#on(this.#root, false, (name) => scripts.test(name) || name === '.env' || isFolder(name)),
      ...this.#folders.map((folder) => this.#on(folder, true, (name) => scripts.test(name))),
    ];
  }

  #on(folder: string, recursive: boolean, matters: (name: string) => boolean): FSWatcher {
    const watcher = watch(folder, { recursive, persistent: false }, (_event, name) => {
      if (name === null || matters(name)) this.#soon();
    });
    // A folder that was removed: the one around it tells.
    watcher.on('error', () => watcher.close());
    return watcher;
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // Folders that came or went are watched from now on, or no longer.
      if (this.#present().join() !== this.#folders.join()) {
        for (const watcher of this.#watchers) watcher.close();
        this.#watch();
      }
      this.#changed();
    }, settleTime);
  }

  #present(): readonly string[] {
    return ['plugins', 'channels'].map((name) => join(this.#root, name)).filter((path) => existsSync(path));
  }
}

function isFolder(name: string): boolean {
  return name === 'plugins' || name === 'channels';
}
