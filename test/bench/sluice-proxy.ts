/** Sluice as an operator runs it: a config file, every discovered plugin, an API key. */
import { loadConfig } from '../../core/config/config.ts';
import { startServer } from '../../core/server.ts';
import { answering, measuring } from './answering.ts';

const server = await startServer(await loadConfig(process.env.BENCH_CONFIG));
answering(measuring, { url: server.url });
