import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { collections, type ObjectFormat } from '../../../plugins/provider-objects/collections.ts';
import {
  referenceTables,
  turnReferences,
  type ReferenceRow,
} from '../../../plugins/provider-objects/reference-table.ts';
import { sdkMembers, type SdkMember } from '../../support/sdk-members.ts';

/** Members that look like ids of kept objects and are in no table. */
interface Exception {
  readonly names: readonly string[];
  /** Types that declare them. Default: all. */
  readonly owners?: RegExp;
  readonly why: string;
}

interface Sdk {
  readonly api: ObjectFormat;
  readonly files: readonly string[];
  /** Types of requests to endpoints that are served. */
  readonly roots: RegExp;
  /** Members beside the usual ones that look like ids. */
  readonly alsoLike?: RegExp;
  readonly exceptions: readonly Exception[];
}

const packages = join(import.meta.dirname, '../../../node_modules');

function declarations(folder: string, keep = /./): readonly string[] {
  return readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.d.ts') && keep.test(file))
    .map((file) => join(packages, folder, file));
}

/** Parts of the OpenAI API that are not served. */
const notServed =
  'admin agents assistants beta chatkit content-provenance-checks decisions live safety skills threads webhooks'.split(
    ' ',
  );

const like =
  /(?:^|_)(?:ids?|uris?)$|(?:Id|Ids|Uri|Uris)$|^(?:file|files|container|session|batch|assistant|thread|conversation|cachedContent)$|_file$|^file_name$|vector_?store|[sS]kill|^previous|[mM]emory|[mM]emories|[cC]ached_?[cC]ontent|^handle$|[dD]ata_?[sS]ets?$|[dD]atastores?$|[cC]orp(?:us|ora)$/;

const params = /Params(?:Base|NonStreaming|Streaming)?$/;

const sdks: Readonly<Record<string, Sdk>> = {
  openai: {
    api: 'chat-completions',
    files: declarations('openai/resources', new RegExp(`^(?!(?:${notServed.join('|')})[./])`)),
    roots: /Params(?:Base|NonStreaming|Streaming)?$|^ResponsesClientEvent$|^RealtimeClientEvent$/,
    exceptions: [
      {
        names: ['id'],
        owners: /^Response(?!Prompt$|ConversationParam$)\w*(?:\.|$)/,
        why: 'the id of an item that stands whole in the request; item_reference is among the references to turns',
      },
      {
        names: ['id'],
        owners: /^RealtimeConversationItem|^RealtimeMcp|^ConversationItemWithReference/,
        why: 'an item of the session, which belongs to one socket',
      },
      {
        names: ['id'],
        owners: /^ChatCompletion(?:Message|Chunk)/,
        why: 'a call of a tool in the same request',
      },
      {
        names: ['id'],
        owners: /^ChatCompletionAssistantMessageParam\.Audio$/,
        why: 'sound that the provider has made during a call; the gateway keeps no list of it',
      },
      {
        names: ['id'],
        owners: /^(?:SpeechCreateParams|ChatCompletionAudioParam|Realtime\w*)(?:\.\w+)*\.ID$/,
        why: 'a voice of the account: voices are not made through the gateway, so no key owns one',
      },
      {
        names: ['id'],
        owners: /^ResponsePrompt$/,
        why: 'a prompt of the account: prompts are not made through the gateway',
      },
      {
        names: ['id'],
        owners: /^ResponseConversationParam$/,
        why: 'inside of conversation, which is among the references to turns',
      },
      {
        names: ['id'],
        owners: /^Video(?:Edit|Extend)Params\./,
        why: 'the endpoints that take it are not served',
      },
      { names: ['file'], why: 'the bytes of a file, or an object with file_id' },
      { names: ['files'], owners: /^FileBatchCreateParams$/, why: 'objects with file_id' },
      { names: ['session'], why: 'the options of a session' },
      {
        names: ['container_id', 'conversation_id', 'eval_id', 'run_id', 'vector_store_id'],
        owners: params,
        why: 'a segment of the path: the object in the path is looked up, and what lies below it belongs to it',
      },
      { names: ['part_ids'], why: 'parts of the upload in the path' },
      {
        names: ['approval_request_id', 'call_id', 'caller_id', 'tool_call_id'],
        why: 'an item of the same conversation',
      },
      {
        names: ['item_id', 'previous_item_id', 'response_id'],
        why: 'an item or an answer of the session, which belongs to one socket',
      },
      { names: ['continuation_id', 'event_id', 'stream_id'], why: 'chosen by the client, for its own use' },
      { names: ['group_id'], why: 'a label of traces' },
      {
        names: ['connector_id', 'tunnel_id', 'skill_id', 'skills', 'project_id', 'project_ids'],
        why: 'of the operator’s account: none is made through the gateway, so no key owns one',
      },
      { names: ['memory_limit'], why: 'a size' },
      { names: ['target_uri'], why: 'the endpoint that takes it is not served' },
    ],
  },
  anthropic: {
    api: 'messages',
    files: declarations('@anthropic-ai/sdk/resources', /^(?:beta\/)?(?:messages|files)[./]/),
    roots: params,
    exceptions: [
      {
        names: ['container'],
        why: 'a container that the provider has made during a call; the gateway keeps no list of them',
      },
      { names: ['id'], owners: /ContainerParams$/, why: 'inside of container' },
      { names: ['id'], owners: /ToolUseBlockParam$/, why: 'a call of a tool in the same request' },
      { names: ['file'], why: 'the bytes of a file' },
      { names: ['ids', 'scope_id'], why: 'filters of a list: lists have the objects of the key alone' },
      { names: ['custom_id', 'user_id'], why: 'chosen by the client, for its own use' },
      { names: ['tool_use_id', 'tool_id', 'tab_id', 'download_id'], why: 'a part of the same conversation' },
      {
        names: ['previous_message_id'],
        why: 'an answer whose cache is compared; the gateway keeps no list of the ids of answers',
      },
      { names: ['thread'], why: 'refused: threads are not served' },
      {
        names: ['skill_id', 'skills', 'user_profile_id', 'workspace_id'],
        why: 'of the operator’s account: none is made through the gateway, so no key owns one',
      },
    ],
  },
  google: {
    api: 'generate-content',
    files: declarations('@google/genai/dist', /^genai\.d\.ts$/),
    roots:
      /^(?:GenerateContent|CountTokens|EmbedContent|(?:Create|Update|Get)CachedContent|UploadFile|(?:Create|Get)File|Create(?:Embeddings)?BatchJob|(?:Create|Get)FileSearchStore|ImportFile|UploadToFileSearchStore)Parameters$/,
    alsoLike: /Names?$|^name$/,
    exceptions: [
      {
        names: ['name'],
        owners: /^(?:Get|Update)\w+Parameters$/,
        why: 'a segment of the path: the object in the path is looked up',
      },
      {
        names: ['name'],
        owners: /^(?:File_2|UploadFileConfig)$/,
        why: 'the name of the file that is made: the provider refuses one that exists',
      },
      {
        names: ['name'],
        owners: /^(?:McpServer|MCPServer|Function\w*|VideoContent|ApiKeyConfig|PlaceCitation)$/,
        why: 'the name of a function, a server or a place',
      },
      { names: ['id'], why: 'a call in the same request' },
      { names: ['file'], why: 'the bytes of a file, or its description' },
      { names: ['fileSearchStoreName'], why: 'a segment of the path' },
      { names: ['uri', 'uris'], why: 'an address of the Interactions API, which is not served' },
      {
        names: ['environment_id', 'file_name'],
        owners: /^(?:Environment_2|FileCitation)$/,
        why: 'of the Interactions API, which is not served',
      },
      {
        names:
          'bigqueryUri datastore datastores gcsUri gcs_uri kmsKeyName modelName promptTemplateName ragCorpora ragCorpus ragFileIds rag_corpus rag_file_ids responseTemplateName vertexDataset vertexDatasetName'.split(
            ' ',
          ),
        why: 'a name of the operator’s cloud project, of what is made there and not through the gateway',
      },
      {
        names:
          'chunkId displayName documentName document_uri downloadUri fileId flagContentUri googleMapsUri imageUri mediaId media_id photoUri placeId place_id reviewId review_id sourceFlaggingUris sourceId sourceUri tokenId'.split(
            ' ',
          ),
        why: 'a part of an answer, or a title',
      },
      {
        names: ['allowedFunctionNames', 'voiceName'],
        why: 'names of functions and of the provider’s voices',
      },
    ],
  },
  cohere: {
    api: 'chat-completions',
    files: declarations('cohere-ai/dist/api'),
    roots: /^(?:V2)?(?:Rerank|Embed)Request$/,
    exceptions: [],
  },
};

const rowOf = ({ name, owner }: SdkMember, rows: readonly ReferenceRow[]): ReferenceRow | undefined =>
  rows.find(({ member, type }) => member === name && (type === undefined || owner.endsWith('FileID')));

const isTurn = ({ name, owner }: SdkMember): boolean =>
  turnReferences.some(
    ({ member }) => member === name && (member !== 'id' || owner.endsWith('ItemReference')),
  );

describe.each(Object.entries(sdks))(
  'requests of the SDK %s',
  (_name, { api, files, roots, alsoLike, exceptions }) => {
    const members = sdkMembers(files, roots).filter(
      ({ name }) => like.test(name) || alsoLike?.test(name) === true,
    );
    const { rows } = referenceTables[api];
    const isExcepted = ({ name, owner }: SdkMember, { names, owners }: Exception): boolean =>
      names.includes(name) && (owners === undefined || owners.test(owner));
    const others = members.filter((one) => rowOf(one, rows) === undefined && !isTurn(one));

    test('have no member that looks like the id of a kept object and is neither a reference nor an exception', () => {
      const unknown = others.filter((one) => !exceptions.some((exception) => isExcepted(one, exception)));
      expect(unknown.map(({ name, owner }) => `${owner}.${name}`)).toEqual([]);
    });

    test('still have what the exceptions are about', () => {
      const stale = exceptions.flatMap((exception) =>
        exception.names.filter(
          (name) => !members.some((one) => one.name === name && isExcepted(one, exception)),
        ),
      );
      expect(stale).toEqual([]);
    });
  },
);

test('the references of the tables are those that SDKs have, and a few of other clients', () => {
  const all = Object.values(sdks).map(({ api, files, roots }) => ({
    api,
    members: sdkMembers(files, roots),
  }));
  const unseen = Object.entries(referenceTables).flatMap(([api, { rows }]) =>
    rows.filter((row) => !all.some((sdk) => sdk.api === api && sdk.members.some((one) => rowOf(one, [row])))),
  );
  // The spelling of protocol buffers, which the provider reads too.
  expect(unseen.map(({ member }) => member)).toEqual(['file_uri', 'cached_content']);
});

test('what the tables leave out is not served', () => {
  for (const name of notServed) expect(collections.filter((one) => one.name.startsWith(name))).toEqual([]);
});

test('the table of references is the one that is written down', async () => {
  const cells = (row: readonly string[]): string => `| ${row.join(' | ')} |`;
  const lines = Object.entries(referenceTables).flatMap(([api, { rows }]) =>
    rows.map(({ member, type, collection, madeInCalls }) =>
      cells([
        api,
        `\`${member}\`${type === undefined ? '' : ` of type \`${type}\``}`,
        'any',
        'checked',
        'checked',
        'checked',
        collection,
        madeInCalls === true ? 'passes' : '404',
      ]),
    ),
  );
  const turns = turnReferences.map(({ member, depth, names }) =>
    cells(['responses', `\`${member}\``, depth, 'none', 'refused', 'checked', names, '404']),
  );
  const head = [
    'API',
    'member',
    'depth',
    'forms, query',
    'batch lines',
    'sockets',
    'kind',
    'owned by no key',
  ];
  const table = [cells(head), cells(head.map(() => '---')), ...lines, ...turns, ''].join('\n');
  await expect(table).toMatchFileSnapshot('references.txt');
});
