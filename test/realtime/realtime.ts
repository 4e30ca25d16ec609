/**
 * `npm run realtime`: 200 sessions at once for a minute through one gateway, both sides talking, and one client that reads nothing.
 * `--seconds N` and `--sessions N` for other numbers. The last line says what must be zero, and the exit code is 1 unless it is.
 */
import { parseArgs } from 'node:util';
import { prove } from './run.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    sessions: { type: 'string', default: '200' },
  },
});
const { damaged, broken, unrecorded, uncharged, growth } = await prove({
  sessions: Number(values.sessions),
  seconds: Number(values.seconds),
  flood: 256,
  print: (line) => console.log(line),
});
console.log(`damaged ${damaged}, broken ${broken}, unrecorded ${unrecorded}, uncharged ${uncharged}`);
process.exitCode = damaged + broken + unrecorded + uncharged === 0 && growth < 128 * 1024 * 1024 ? 0 : 1;
