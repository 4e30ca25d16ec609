/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { Call, InternalTools, openResponseStore } from 'sluice/internal';

/** Responses and conversations that are kept. */
export type ResponseStore = ReturnType<typeof openResponseStore>;

/** A response that is kept. */
export type StoredResponse = Parameters<ResponseStore['save']>[0];

/** A conversation that is kept. */
export type StoredConversation = Parameters<ResponseStore['createConversation']>[0];

/** Which items of a conversation are listed. */
export type ItemQuery = Parameters<ResponseStore['listItems']>[2];

/** A page of items. */
export type ItemPage = NonNullable<Awaited<ReturnType<ResponseStore['listItems']>>>;

/** A call that continues after its client has disconnected. */
export type Detached = ReturnType<InternalTools['detach']>;

/** Calls that go on without their clients. */
export type DetachedCalls = InternalTools['detached'];

/** Channels, and the models that they serve. */
export type Catalog = InternalTools['catalog'];

/** Changes that plugins make to a call. */
export type CallEdits = Call['edits'];
