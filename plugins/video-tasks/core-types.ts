/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { Call, InternalTools, openTaskStore } from 'sluice/internal';

/** Tasks of callers. */
export type TaskStore = ReturnType<typeof openTaskStore>;

/** A task that a provider works on. */
export type Task = Parameters<TaskStore['create']>[0];

/** Claim of a poller on tasks. */
export type TaskLease = Parameters<TaskStore['claim']>[0];

/** Books what calls cost. */
type Bookkeeper = InternalTools['bookkeeper'];

/** Charge and record of a call that has ended. */
export type Settlement = Parameters<Bookkeeper['enqueue']>[0];

/** Call that continues after its client has disconnected. */
export type Detached = ReturnType<InternalTools['detach']>;

/** Changes that plugins make to a call. */
export type CallEdits = Call['edits'];
