import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { blank, everyFile, home, imports, lineOf, places, read, scripts, spreads } from './source.ts';

const core = scripts('core');
const plugins = scripts('plugins');
const channels = scripts('channels');
const product = [...core, ...plugins, ...channels];
const own = everyFile().filter(
  (path) => !path.startsWith('test/fixtures/') && path !== 'test/house/laws.test.ts',
);
const ownScripts = own.filter((path) => path.endsWith('.ts'));

/** Nothing when a law is kept; else what to do, and where. */
function verdict(found: readonly string[], whatToDo: string): string {
  return found.length === 0 ? '' : `${whatToDo}\n  ${found.join('\n  ')}`;
}

/** `importer imports specifier` for each import that is not allowed. */
function strangers(
  files: readonly string[],
  allowed: (specifier: string, target: string | undefined, importer: string) => boolean,
): string[] {
  return files.flatMap((path) =>
    imports(path)
      .filter(({ specifier, target }) => !allowed(specifier, target, path))
      .map(({ specifier }) => `${path} imports ${specifier}`),
  );
}

/** Packages that know a framing which nobody should write anew. */
const framings: ReadonlyMap<string, string> = new Map([
  ['core/formats/_shared/event-stream.ts', '@smithy/eventstream-codec'],
]);

/** Packages of a cloud's own, loaded by its channel alone and only when a call needs them. */
const clouds: ReadonlyMap<string, string> = new Map([
  ['channels/_kit/identity/aws-signature.ts', '@smithy/signature-v4'],
  ['channels/_kit/identity/aws.ts', '@aws-sdk/credential-providers'],
  ['channels/vertex/identity.ts', 'google-auth-library'],
  ['channels/_kit/identity/entra.ts', '@azure/identity'],
  ['plugins/guard/remote/model-armor.ts', 'google-auth-library'],
  ['plugins/cache/semantic/vectors.ts', 'sqlite-vec'],
  ['plugins/secrets-google.ts', 'google-auth-library'],
  ['plugins/secrets-azure.ts', '@azure/identity'],
]);

/** Packages that only operators of one plugin install, by its folder. They are optional peer dependencies, asked for by `requirePackage`. */
const optionalPackages: ReadonlyMap<string, readonly string[]> = new Map([
  ['plugins/alerts/', ['nodemailer']],
  ['plugins/admin/', ['jose', 'openid-client']],
  ['plugins/secrets-aws.ts', ['@aws-sdk/credential-providers', '@smithy/signature-v4']],
  [
    'plugins/mcp/',
    ['@modelcontextprotocol/client', '@modelcontextprotocol/client/stdio', '@modelcontextprotocol/server'],
  ],
  [
    'plugins/telemetry/',
    [
      '@opentelemetry/api',
      '@opentelemetry/core',
      '@opentelemetry/otlp-transformer',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-logs',
      '@opentelemetry/sdk-metrics',
      '@opentelemetry/sdk-trace',
    ],
  ],
]);

const isOptional = (specifier: string, importer: string): boolean =>
  optionalPackages
    .entries()
    .some(([folder, packages]) => importer.startsWith(folder) && packages.includes(specifier));

const isBuiltin = (specifier: string): boolean => specifier.startsWith('node:');

describe('who may import whom', () => {
  test('the model imports nothing of ours', () => {
    expect(
      verdict(
        strangers(
          scripts('core/model'),
          (specifier, target) => isBuiltin(specifier) || target?.startsWith('core/model/') === true,
        ),
        'core/model is what everything else stands on: move what it needs into core/model, or the function that needs more out of it.',
      ),
    ).toBe('');
  });

  test('formats know the model, errors and what formats share', () => {
    const allowed = (specifier: string, target: string | undefined, importer: string): boolean => {
      if (target === undefined) return isBuiltin(specifier) || framings.get(importer) === specifier;
      const folder = importer.split('/').slice(0, 3).join('/');
      return (
        target.startsWith('core/model/') ||
        target.startsWith('core/json/') ||
        target.startsWith('core/formats/_shared/') ||
        (target.startsWith('core/formats/_openai/') && folder !== 'core/formats/_shared') ||
        target.startsWith(`${folder}/`) ||
        // Its bytes are those of the other format, in an envelope.
        (folder === 'core/formats/invoke' && target === 'core/formats/messages/codec.ts') ||
        [
          'core/log/known-secrets.ts',
          'core/sdk/errors.ts',
          'core/sdk/format.ts',
          'core/sdk/define.ts',
        ].includes(target)
      );
    };
    expect(
      verdict(
        strangers(scripts('core/formats'), allowed),
        'A format imports core/model, core/json, core/log/known-secrets.ts, core/sdk/errors.ts, core/sdk/define.ts, core/sdk/format.ts, _shared, _openai and its own folder. What two formats share goes to _shared, or to _openai where they are of that family; what needs more is no business of a format.',
      ),
    ).toBe('');
  });

  test('the core imports no plugin and no channel', () => {
    expect(
      verdict(
        strangers(
          core,
          (_specifier, target) =>
            target === undefined || target.startsWith('core/') || target === 'package.json',
        ),
        'The core finds plugins and channels by discovery and by the config. Put what it needs into core/ behind an interface in core/sdk.',
      ),
    ).toBe('');
  });

  test.each(['plugins', 'channels'])(
    '%s import sluice, their own folder, rxjs, zod, prom-client and Node',
    (folder) => {
      const packages = new Set([
        'sluice',
        'sluice/channel-kit',
        'sluice/internal',
        'rxjs',
        'zod',
        'prom-client',
      ]);
      expect(
        verdict(
          strangers(scripts(folder), (specifier, target, importer) =>
            target === undefined || specifier.startsWith('sluice')
              ? packages.has(specifier) ||
                isBuiltin(specifier) ||
                clouds.get(importer) === specifier ||
                isOptional(specifier, importer)
              : target.startsWith(`${folder}/`),
          ),
          `What ${folder} need of the core they import as 'sluice' or 'sluice/channel-kit', where authors find it too; what is for this repository alone is 'sluice/internal' (core/sdk/internal.ts).`,
        ),
      ).toBe('');
    },
  );

  /**
   * The floors of the core, the highest first: each imports its own and those above it. At the end stand the two doors through which this
   * repository's plugins and everybody's tests come in: they show what lies on all floors, and nothing in the core imports them.
   */
  const floors: readonly (readonly string[])[] = [
    ['core/log.ts', 'core/log/'],
    ['core/model/'],
    ['core/settings/'],
    ['core/performance/'],
    ['core/json/'],
    ['core/tokens/'],
    ['core/sdk/'],
    ['core/formats/'],
    ['core/state/'],
    ['core/money/'],
    ['core/models/'],
    ['core/upstream/'],
    ['core/routing/'],
    ['core/call/'],
    ['core/front/'],
    ['core/config/'],
    ['core/processes/'],
    ['core/gateway.ts'],
    ['core/try-gateway.ts'],
    ['core/server.ts'],
    ['core/conformance/'],
    ['core/cli/'],
    ['core/sdk/internal.ts', 'core/sdk/channel-kit.ts', 'core/sdk/testing/'],
  ];
  const floorOf = (path: string): number =>
    floors.findLastIndex((rooms) => rooms.some((room) => path.startsWith(room)));

  test('each floor of the core imports those above it', () => {
    expect(
      verdict(
        core.filter((path) => floorOf(path) < 0),
        'These files stand on no floor: move them into a room, or name their room among the floors.',
      ),
    ).toBe('');
    expect(
      verdict(
        strangers(
          core,
          (_specifier, target, importer) =>
            target === undefined || !target.startsWith('core/') || floorOf(target) <= floorOf(importer),
        ),
        'What an upper floor needs of a lower one is an interface, and stands with who needs it; the lower floor has it.',
      ),
    ).toBe('');
  });

  test('no file needs itself, types included', () => {
    expect(
      verdict(
        circles(product),
        'These files import each other in a circle, so that none can be read, tested or published alone: move what they share into a file of its own.',
      ),
    ).toBe('');
  });
});

/** Groups of files that import each other in circles, each named once with a way around it. */
function circles(files: readonly string[]): string[] {
  const graph = new Map(
    files.map((path) => [
      path,
      imports(path).flatMap(({ target }) => (target === undefined ? [] : [target])),
    ]),
  );
  const found = new Map<string, string>();
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const from = trail.indexOf(path);
    if (from >= 0) {
      const circle = trail.slice(from);
      found.set(circle.toSorted().join(), [...circle, path].join(' > '));
      return;
    }
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of files) visit(path, []);
  return [...found.values()];
}

describe('what the core knows', () => {
  /** Makers of models, and their products, as a word or a part of one. */
  const makers =
    /[\w-]*(openai|anthropic|claude|gemini|google|goog-|groq|deepseek|mistral|openrouter|ollama|azure|bedrock|vertex|gpt-?\d|kimi|moonshot|qwen|xai\b|grok|llama)[\w-]*/i;

  /** Words of the public formats: they stand on the wire, so that a codec cannot do without them. Nothing else belongs here. */
  const wireFacts = new Set([
    // The family of formats whose shapes stand in one folder.
    '_openai',
    // Header names of the three formats, which also decide in which format models are listed.
    'openai-beta',
    'anthropic-version',
    'anthropic-beta',
    // The same two as members of a body, where messages stand in an envelope, and the one version that there is.
    'anthropic_version',
    'anthropic_beta',
    'bedrock-2023-05-31',
    // The service in addresses of models, and members of requests to it.
    'bedrock',
    'bedrockRerankingConfiguration',
    'BEDROCK_RERANKING_MODEL',
    // How one format tells of limits.
    'anthropic-ratelimit-',
    'x-goog-api-key',
    // `reasoning_details[].format` and `extra_content.google` of chat completions, and where one dialect puts a stream's usage.
    'anthropic-claude-v1',
    'google-gemini-v1',
    'openai-responses-v1',
    'google',
    'x_groq',
    // Tools of generateContent, and the host whose file addresses only that format's provider can read.
    'googleSearch',
    'googleSearchRetrieval',
    'googleMaps',
    'googleapis',
    // How keys begin that must never be shown.
    'xai',
  ]);

  /** Settings of agents are words of other programs, and nothing else stands in these files. */
  const isAgent = (path: string): boolean => path.startsWith('core/cli/connect/agents/');

  test('no provider by name', () => {
    // The addresses at which clients of clouds call a format are words of the wire, and nothing else stands in these files.
    const named = core.filter((path) => !/^core\/formats\/[^/]+\/aliases\.ts$/.test(path) && !isAgent(path));
    const found = named.flatMap((path) => {
      const text = read(path);
      return [...blank(text, { strings: false }).matchAll(new RegExp(makers, 'gi'))]
        .filter(([word]) => !wireFacts.has(word))
        .map(({ 0: word, index }) => `${path}:${lineOf(text, index)}: ${word}`);
    });
    expect(
      verdict(
        found,
        'Knowledge about a provider lives in channels/. Say what a model can do with a trait (core/model/traits.ts); only a word that stands on the wire of a public format may be added to wireFacts.',
      ),
    ).toBe('');
  });

  test('no plugin by name', () => {
    const names = everyFile('plugins').map((path) => path.split('/')[1]?.replace(/\.ts$/, '') ?? '');
    // These are words of other things as well: a header of messages, items of Responses, a fault of providers, marks on prompts, a role,
    // the list that `sluice alert` shows.
    const words = new Set(['request-id', 'compaction', 'rate-limit', 'mcp', 'cache', 'admin', 'alerts']);
    const plain = [...new Set(names)].filter((name) => /^[a-z][a-z-]*$/.test(name) && !words.has(name));
    expect(
      verdict(
        places(
          core.filter((path) => !isAgent(path)),
          new RegExp(`(['"\`])(${plain.join('|')})\\1|"(${plain.join('|')})"`),
          {
            strings: false,
          },
        ),
        'The core must run without any plugin: ask by stage or by capability, and let messages name the stage.',
      ),
    ).toBe('');
  });
});

describe('names use the terms of the field', () => {
  const advice =
    'Name what it is by a term of the field: response, text, field, option, attempt, permit, recall, shared state, ledger, endpoint, eligible.';
  // `spoken` is a field of turns that are stored.
  const unclear =
    /\b(?:const|let|function|class|interface|type|readonly) #?(\w*(?:[tT]old|[sS]aid|[hH]eard|[wW]ish(?:es)?|[dD]eeds?|[dD]esks?|[oO]blig(?:e|ing)|[oO]bey(?:ed)?|[uU]ntold|[wW]hoever|[hH]ear|[bB]ook|[dD]oors?)|able|Able(?:[A-Z]\w*)?|say(?:[A-Z]\w*)?|askFor\w*)\b/;

  test('in declarations', () => {
    expect(verdict(places(product, unclear, { strings: false }), advice)).toBe('');
  });

  test('in members of classes', () => {
    const member =
      /(?<=\n) +(?:(?:protected|private|override|abstract|static|async|readonly) )*#?(?:(?:un)?told|said|heard|wish(?:es)?|desk|door|say(?:[A-Z]\w*)?)\??\s*[(:=<;]/;
    expect(verdict(places(product, member), advice)).toBe('');
  });

  test('in tests', () => {
    expect(verdict(places(scripts('test'), unclear), advice)).toBe('');
  });
});

describe('one of a kind', () => {
  /**
   * One subscription per call pulls everything: the reply's. The other files are operators, which subscribe to their source when they are
   * subscribed to, and hand their own unsubscribing on. An operator made of rxjs's own needs no place here.
   */
  const maySubscribe = [
    'core/front/reply.ts', // the one that counts
    'core/front/socket-reply.ts', // its like for sockets
    'core/front/tunnel.ts', // its like for sockets that pass through
    'core/upstream/socket.ts', // sends what comes from the client of such a socket
    'core/upstream/credentials/authorization.ts', // lets go of a refusal whose request is sent once more
    'core/upstream/compression.ts', // undoes a provider's compression
    'core/sdk/operators.ts', // the operators for plugins
    'core/sdk/hold-back.ts', // another of them
    'core/sdk/followed-reply.ts', // passes a reply's events to all who follow it
    'core/sdk/testing/pipeline.ts', // stands for the reply where plugins are tested
    'core/routing/send-to-channel.ts', // turns a channel's bytes into events
    'core/routing/attempt.ts', // lets go of a reply that comes too late
    'plugins/cache/flight.ts', // passes one response to all calls that wait for it
    'plugins/translation/answer.ts', // bytes to decoded events, or to frames
  ];

  test('streams are subscribed to in one place, and by operators', () => {
    expect(
      verdict(
        places(product, /\.subscribe\(/).filter(
          (location) => !maySubscribe.some((path) => location.startsWith(`${path}:`)),
        ),
        'A second subscription runs the call twice, or outlives it. Return the stream and change it with operators: map, observe, onUsage, eachInOrder.',
      ),
    ).toBe('');
    expect(
      verdict(
        maySubscribe.filter((path) => places([path], /\.subscribe\(/).length === 0),
        'These files no longer subscribe: take them off the list.',
      ),
    ).toBe('');
  });

  /** Files that join bytes themselves, and why no response of a provider can make that long or slow. */
  const mayJoin: Readonly<Record<string, string>> = {
    'channels/bedrock/streams.ts': 'the messages of one read; one number in front of what wholeBytes gave',
    'channels/together/form-stream.ts': 'the head of a form that a client sends',
    'channels/bedrock/masks.ts': 'the chunks of a picture that is written here',
    'channels/sagemaker/answers.ts': 'the messages of one read',
    'channels/demo/png.ts': 'the chunks of a picture that is written here',
    'channels/demo/video.ts': 'the boxes of a film that is written here',
    'core/upstream/reader.ts': 'the pieces of one read of the socket',
    'core/upstream/socket.ts': 'the head of a refusal, up to its limit',
    'plugins/admin/json-bytes.ts': 'the parts of an answer that is written here',
    'plugins/mcp/servers/lines.ts': 'one line of a process, up to its limit',
    'plugins/mcp/servers/token-vault.ts': 'the parts of a sealed token',
    'plugins/quota/meter.ts': 'a sample of a fixed size',
    'plugins/translation/answer.ts': 'the first bytes of a file, and an error up to its limit',
    'plugins/translation/bytes.ts': 'the parts of one read',
    'plugins/translation/images.ts': 'a file that a client has sent',
    'plugins/translation/pass-request.ts': 'the parts of a request',
    'plugins/translation/respelled.ts': 'the frames of one run',
    'plugins/translation/passed-stream.ts': 'the last frame of a stream',
    'plugins/translation/passed-whole.ts': 'the end of a reply, of a fixed size',
    'plugins/usage-log/capture.ts': 'what is kept of a reply, up to its limit',
    'plugins/video-tasks/references.ts': 'a file that a client has sent',
  };

  test('a response of a provider is collected in one way', () => {
    const files = product.filter(
      (path) => /^(?:channels|plugins|core\/upstream)\//.test(path) && !path.startsWith('plugins/dashboard/'),
    );
    const found = places(files, /\bBuffer\.concat\(|\.arrayBuffer\(\)/);
    expect(
      verdict(
        found.filter((location) => !Object.keys(mayJoin).some((path) => location.startsWith(`${path}:`))),
        "Collect a provider's response with wholeBytes or WholeBytes (core/sdk/whole-bytes.ts), which have a limit and take time in proportion to the length. What joins other bytes is named in mayJoin, with the reason.",
      ),
    ).toBe('');
    expect(
      verdict(
        Object.keys(mayJoin).filter((path) => !found.some((location) => location.startsWith(`${path}:`))),
        'These files no longer join bytes: take them off the list.',
      ),
    ).toBe('');
  });

  /** Patterns of code that can open a connection, without the exceptions. */
  const connecting =
    /\bimport\s+(?!type\b)(?:\{([^}]*)\}|[\w*][^'"]*?)\s*from\s*'(?:node:(?:http|https|http2|net|tls|dgram|dns|dns\/promises)|undici|\.[^']*\/undici\.ts|ws|pg|@redis\/client)'|\bimport\('(?:node:(?:http|https|http2|net|tls|dgram|dns|dns\/promises)|undici|ws)'\)\.(?!IncomingMessage|ServerResponse)|(?<!\btypeof )\bimport\('(?:pg|@redis\/client)'\)|\brequire\('(?:undici\/|pg')|(?<![.\w#])fetch\(|\bnew WebSocket\(/g;
  const connectsNowhere =
    /^(?:type .*|STATUS_CODES|validateHeader(?:Name|Value)|createServer|Server(?: as \w+)?|ServerResponse|WebSocketServer|isIP(?:v[46])?|BlockList|createSecureContext|)$/;
  const mayConnect = [
    'core/upstream/guarded/connection.ts', // to addresses that clients and providers give: the guard
    'core/upstream/guarded/media.ts', // where `fetch` is the guard's
    'core/upstream/probe.ts', // connects and hangs up, for `sluice doctor`
    'core/performance/undici.ts', // what those below connect with:
    'core/upstream/send.ts', // through the connections that follow,
    'core/upstream/services.ts',
    'core/upstream/connections.ts', // to addresses that the operator gives, here and below: providers,
    'core/upstream/proxy.ts', // proxies,
    'core/upstream/connect-agent.ts', // proxies for sockets,
    'core/upstream/sockets.ts', // sockets of providers,
    'core/conformance/index.ts', // the gateway under trial,
    'core/sdk/testing/channel-cases/scene.ts', // and under test,
    'core/state/database/postgres-pool.ts', // the database,
    'core/state/links/shared-connection.ts', // the shared store,
    'plugins/alerts/expiries.ts', // and whose certificates are watched
  ];

  test('connections are opened where it is known whose addresses they lead to', () => {
    const found = product.flatMap((path) => {
      const text = read(path);
      return [...blank(text, { strings: false }).matchAll(connecting)]
        .filter(
          ([, names]) =>
            names === undefined || !names.split(',').every((name) => connectsNowhere.test(name.trim())),
        )
        .map(({ index }) => `${path}:${lineOf(text, index)}`);
    });
    expect(
      verdict(
        found.filter((location) => !mayConnect.some((path) => location.startsWith(`${path}:`))),
        "An address that a client or a provider gave is asked with askGuarded (core/upstream/guarded/connection.ts), fetchMedia or download: they check it, its names and its redirects. A channel's own address is asked with the http client that it is given.",
      ),
    ).toBe('');
    expect(
      verdict(
        mayConnect.filter((path) => !found.some((location) => location.startsWith(`${path}:`))),
        'These files no longer connect: take them off the list.',
      ),
    ).toBe('');
  });

  test('SQLite is written to in one way', () => {
    const found = places(
      product,
      /\bBEGIN (?:IMMEDIATE|EXCLUSIVE|TRANSACTION)\b|\bbusy_timeout\b|\bnew DatabaseSync\b/,
      {
        strings: false,
      },
    );
    expect(
      verdict(
        found.filter(
          // The thread has its own event loop, and its connection reads alone.
          (location) =>
            !/^core\/state\/database\/(?:sqlite-writes|migrations|index|sqlite-to-read)\.ts:/.test(
              location,
            ) &&
            // Commands that run alone, in a process that serves nobody.
            !/^core\/state\/backup\/(?:sqlite|tables)\.ts:/.test(location),
        ),
        'A write that waits for another process inside SQLite holds the event loop up: use writeInSqlite or transactionInSqlite (core/state/database/sqlite-writes.ts), or work with sqlOf(database).',
      ),
    ).toBe('');
    const writing = core.filter((path) =>
      /\bimport \{[^}]*\b(?:DatabaseSync|StatementSync)\b/.test(read(path)),
    );
    expect(
      verdict(
        writing.filter((path) => !path.startsWith('core/state/')),
        'Only core/state knows the connection of SQLite.',
      ),
    ).toBe('');
  });

  test('one AbortController', () => {
    // The test kit has a client of its own, which leaves. Reads of the admin API belong to no call.
    const reads = new Set([
      'core/front/plugin-route.ts',
      'core/money/usage-log/sums-thread.ts',
      'core/state/database/thread-answers.ts',
    ]);
    const gateway = product.filter((path) => !path.startsWith('core/sdk/testing/') && !reads.has(path));
    const found = places(gateway, /new AbortController\b/);
    expect(
      verdict(
        found.length === 1 && found[0]?.startsWith('core/call/lifetime.ts:') === true ? [] : found,
        'The call has one AbortController, in core/call/lifetime.ts: pass call.signal on, or use call.onEnd.',
      ),
    ).toBe('');
  });

  test('the environment is read in core/settings/environment.ts', () => {
    expect(
      verdict(
        places(product, /\bprocess\s*\.\s*env\b|\bprocess\s*\[/).filter(
          (location) => !location.startsWith('core/settings/environment.ts:'),
        ),
        "Read the environment with env('NAME') from core/settings/environment.ts, so that .env files count and one place lists what there is.",
      ),
    ).toBe('');
  });

  test('no list of a client or provider becomes the arguments of a call', () => {
    const rooms =
      /^(?:core\/(?:call|formats|front|model|routing|sdk|state|tokens|upstream)|plugins|channels)\//;
    // Statements bind as many values as they have places; the others take tuples.
    const fewArguments =
      /\b(?:rows?|run|all|emit|failed|fields|extraOf|set)\(|\bfunction \w+\(|\(\.\.\.values: unknown/;
    expect(
      verdict(
        product
          .filter((path) => rooms.test(path) && !path.startsWith('core/sdk/testing/'))
          .flatMap(spreads)
          .filter((location) => !fewArguments.test(location)),
        'Arguments stand on the stack, which has room for some ten thousand: push one by one, reduce with Math.max, take from() in place of of().',
      ),
    ).toBe('');
  });

  test('the console belongs to the command line', () => {
    expect(
      verdict(
        places(product, /\bconsole\b/).filter((location) => !/^core\/(cli\/|log\.ts:)/.test(location)),
        'Write to the log (tools.log): it is structured and masks secrets. Only core/cli speaks to a person.',
      ),
    ).toBe('');
  });
});

describe('how it is written', () => {
  test('no any', () => {
    expect(
      verdict(
        places(ownScripts, /(?<!\.)\bany\b(?!\s*[:(])/),
        'Name the type, or take unknown and check it.',
      ),
    ).toBe('');
  });

  test('nothing is left for later', () => {
    expect(
      verdict(
        linesWith(own, /\b(TODO|FIXME|XXX|HACK)\b/),
        'Do it now, or write down in the README that it is missing.',
      ),
    ).toBe('');
  });

  test('every export says what its user needs', () => {
    expect(
      verdict(
        product.flatMap(undocumented),
        'Put a /** sentence */ above it that says what its user needs: shape, unit, errors, the source of an odd rule. Do not repeat the name.',
      ),
    ).toBe('');
  });

  test('every file with several exports says at its top what it is for', () => {
    const several = product.filter(
      (path) =>
        [...read(path).matchAll(/^export (?!type \{|\{|\*)/gm)].length !== 1 && !path.endsWith('.d.ts'),
    );
    expect(
      verdict(
        several.filter((path) => !/^(?:#!.*\n)?\/\*/.test(read(path))),
        'Begin it with one or two sentences that say what it is for. A file with one export has a comment there.',
      ),
    ).toBe('');
  });

  test('no plugin waits for a turn of the event loop', () => {
    expect(
      verdict(
        places(plugins, /\b(?:setImmediate|queueMicrotask|nextTick)\b|\bsetTimeout\([^()]*,\s*0\)/, {
          strings: false,
        }),
        'Figures of a call are final in `onOutcome`, and in `onClose` and `onSettled` of its account, in whatever order plugins run. Long work goes in slices with `yieldToEventLoop`.',
      ),
    ).toBe('');
  });

  /** Files between which the money of a call passes. */
  const moneyPath = [
    ...scripts('core/money', 'core/routing', 'plugins/quota', 'plugins/usage-log', 'plugins/metrics'),
    ...scripts('plugins/realtime-sessions', 'plugins/video-tasks'),
    'plugins/logging.ts',
    'core/call/exchange.ts',
  ];

  test('the money of a call stands in its account, and is left under no key', () => {
    expect(
      verdict(
        moneyPath.filter((path) => /\bcallKey\b/.test(read(path))),
        'Give the account of the call a member for it: core/money/account.',
      ),
    ).toBe('');
  });

  test('files are named in kebab-case', () => {
    const kebab = /^[_.]?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/;
    const documents = /^([A-Z]+\.md|LICENSE|Dockerfile)$/;
    expect(
      verdict(
        own.filter((path) => path.split('/').some((name) => !kebab.test(name) && !documents.test(name))),
        'Name files in kebab-case after their main export: encode-request.ts.',
      ),
    ).toBe('');
  });

  test('tests are named for what a user would notice', () => {
    const title = /\b(?:it|test|describe)(?:\.each\([^)]*\))?\(\s*(['"`])((?:should|correctly)\b[^'"`]*)\1/gi;
    const tests = ownScripts.filter((path) => path.endsWith('.test.ts'));
    expect(
      verdict(
        places(tests, title, { strings: false }),
        'Say what happens: "refuses a key that has expired", not "should work".',
      ),
    ).toBe('');
    expect(
      verdict(
        places(tests, /\b(?:it|test|describe)\.(?:only|todo)\b/),
        'Every test runs: remove .only and .todo.',
      ),
    ).toBe('');
  });

  test('what is to begin first is there', () => {
    expect(
      verdict(
        [...read('test/support/longest-first.ts').matchAll(/'(test\/.+)'/g)]
          .map(([, path = '']) => path)
          .filter((path) => !own.includes(path)),
        'test/support/longest-first.ts names files that are gone: take them out.',
      ),
    ).toBe('');
  });

  test('no test says how fast something must be, nor how soon it gives up', () => {
    const hasty =
      /\bvi\.(?:waitFor|waitUntil)\(|\.poll\([^;]*\btimeout:|^\s*\}, \d+_000\);|\(\) - \w+\)\.toBeLess|\b(?:took|lasted|elapsed)\)\.toBeLess/;
    expect(
      verdict(
        places(
          ownScripts.filter((path) => path.startsWith('test/') && path !== 'test/support/eventually.ts'),
          hasty,
        ),
        'On a busy machine all is slow: wait with expect.poll or eventually (test/support), which know when a wait is hopeless, and print a time instead of asserting it.',
      ),
    ).toBe('');
  });
});

/** `path:line: text` of each line that fits. */
function linesWith(paths: readonly string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) =>
        pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 160)}`] : [],
      ),
  );
}

/**
 * Exports without a comment above them. Overloads share one, and so do the lines of a table: constants that stand line below line. What
 * is only passed on has its comment where it is made.
 */
function undocumented(path: string): string[] {
  const lines = read(path).split('\n');
  const isOneLine = (line: string): boolean => /^export (?:const|type|function) .*;$/.test(line);
  return lines.flatMap((line, index) => {
    const declaration =
      /^export (?:default |declare |abstract |async )*(?:function\*?|class|interface|type|const|enum)? ?(\w+)/;
    const name = declaration.exec(line)?.[1];
    if (name === undefined || /^export (?:type )?[{*]/.test(line)) return [];
    let above = index - 1;
    while (isOneLine(lines[above] ?? '')) above -= 1;
    return lines[above]?.trimEnd().endsWith('*/') === true ? [] : [`${path}:${index + 1}: ${name}`];
  });
}

describe('what is published', () => {
  test('the repository speaks of the product alone', () => {
    const makers = [
      // "The session" alone is a word of the product's: one over a WebSocket.
      /\b((this|another|previous|next|parallel|my) (coding )?|the coding )session\b(?! (id|key|cookie|token))/i,
      /\bsub-?agents?\b|\bco-authored-by\b|\bgenerated (by|with) (an? )?(ai|llm|claude|gpt)/i,
      /\b(the|my|our) brief\b|\b(decisions|architecture|style|spec|wire-formats|performance|lessons-from-peers)\.md\b/i,
    ];
    const issues = /(^|[\s(])#\d{2,}\b|\bissues?[ /]#?\d+\b|\bpull\/\d+\b|\bGH-\d+\b/i;
    const machines = /(?<![\w.])\/(work|home|root|Users|mnt|srv)\/\w|\b[A-Z]:\\\\/;
    const registries =
      /\b(registry|npm|pypi|proxy|mirror|artifactory|nexus)\.[a-z0-9.-]+\.(com|org|net|io|dev|internal|local|corp)\b/i;
    const texts = own.filter((path) => !path.endsWith('package-lock.json'));
    const found = [...makers, issues, machines, registries].flatMap((pattern) => linesWith(texts, pattern));
    expect(
      verdict(
        found,
        'Write about the product: what it does and why, for a reader who was not there when it was made.',
      ),
    ).toBe('');
  });

  test('lock files name no host', () => {
    expect(
      verdict(
        linesWith(
          own.filter((path) => path.endsWith('package-lock.json')),
          /"resolved":|\bregistry\./,
        ),
        'Install with --omit-lockfile-registry-resolved, so that a lock file works with every registry.',
      ),
    ).toBe('');
  });

  test('the compiler is strict', () => {
    const { compilerOptions } = JSON.parse(read('tsconfig.json')) as {
      compilerOptions: Record<string, unknown>;
    };
    const wanted = [
      'strict',
      'noUncheckedIndexedAccess',
      'exactOptionalPropertyTypes',
      'verbatimModuleSyntax',
      'erasableSyntaxOnly',
    ];
    expect(
      verdict(
        wanted.filter((name) => compilerOptions[name] !== true),
        'Switch these on in tsconfig.json: what they find is a mistake in most cases.',
      ),
    ).toBe('');
  });

  test('versions are exact', () => {
    const found = own
      .filter((path) => path.endsWith('package.json'))
      .flatMap((path) => {
        const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read(path)) as Record<
          string,
          Record<string, string> | undefined
        >;
        return Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
          .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
          .map(([name, version]) => `${path}: ${name} ${version}`);
      });
    expect(verdict(found, 'Pin the version that was tested, without ^ or ~.')).toBe('');
  });

  test('every package that is imported is asked for', () => {
    const { dependencies, peerDependencies } = JSON.parse(read('package.json')) as Record<
      string,
      Record<string, string> | undefined
    >;
    const named = { ...dependencies, ...peerDependencies };
    const nameOf = (specifier: string): string =>
      specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
    expect(
      verdict(
        strangers(
          product,
          (specifier, target) =>
            target !== undefined || isBuiltin(specifier) || Object.hasOwn(named, nameOf(specifier)),
        ),
        'Add the package to dependencies in package.json: one that another package brings along may be gone tomorrow.',
      ),
    ).toBe('');
  });

  test('every plugin and channel can be imported by its name', () => {
    const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, unknown> };
    const folders = [...plugins, ...channels]
      .filter((path) => /^[a-z]+\/[^/]+\/index\.ts$/.test(path))
      .map((path) => path.replace('/index.ts', ''));
    expect(
      verdict(
        folders.filter(
          (path) =>
            (exports[`./${path}`] as Record<string, string> | undefined)?.['sluice-source'] !==
            `./${path}/index.ts`,
        ),
        'Name these folders in "exports" of package.json, as the others are: a pattern finds files alone.',
      ),
    ).toBe('');
    const named = Object.keys(exports).filter((path) => /^\.\/(plugins|channels)\/[^*]+$/.test(path));
    expect(
      verdict(
        named.filter((path) => !folders.includes(path.slice(2))),
        '"exports" of package.json names folders that are gone: take them out.',
      ),
    ).toBe('');
  });

  test('a new gateway has every channel that the config of the repository has', () => {
    const template = read('docs/template/gateway.config.ts').split('\n');
    expect(
      verdict(
        read('gateway.config.ts')
          .split('\n')
          .filter((line) => !template.includes(line)),
        'Add these lines to docs/template/gateway.config.ts: it is this config, and a channel of its own.',
      ),
    ).toBe('');
  });

  test('statements bind their values by place or by name', () => {
    expect(
      verdict(
        places(core, /\?\d/, { strings: false }).filter((location) =>
          /SELECT|INSERT|UPDATE|DELETE|VALUES|WHERE/.test(location),
        ),
        'SQLite in Node 22 binds no numbers: write ? or $name instead of ?1.',
      ),
    ).toBe('');
  });

  test('the map of the core is short, names every folder of it, and no file that is gone', () => {
    const map = read('core/README.md');
    expect(map.split('\n').length).toBeLessThanOrEqual(120);
    const rooms = new Set(
      core.map((path) => path.split('/')[1] ?? '').filter((name) => !name.endsWith('.ts')),
    );
    expect([...rooms].filter((room) => !map.includes(`\`${room}/\``))).toEqual([]);
    const named = [...map.matchAll(/`([\w./-]+\.(?:ts|js))`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => !existsSync(join(home, 'core', path)))).toEqual([]);
  });

  test('each file says what it is for before its first line of code', () => {
    const silent = product.filter((path) => {
      const code = read(path).replace(/^(?:\s*import\b[^;]*;\n)+/, '');
      return !/^\s*(?:#!.*\s+)?(?:\/\*|\/\/)/.test(code);
    });
    expect(verdict(silent, 'Begin each of these files with a sentence on what it is for.')).toBe('');
  });

  test('who knows the files of one format knows those of all', () => {
    const [, section = ''] = /^## Files of a format$([\s\S]*)/m.exec(read('core/formats/README.md')) ?? [];
    const lists = [...section.matchAll(/^- (.*?) —/gms)].map(([, list = '']) => list);
    const names = new Set(
      lists.flatMap((list) => [...list.matchAll(/`([\w/-]+)`/g)].map(([, name = '']) => name)),
    );
    const used = new Map(
      core.flatMap((path) => {
        const name = /^core\/formats\/(?!_)[^/]+\/(.+?)(?:(?<!^)\/index)?\.ts$/.exec(path)?.[1];
        return name === undefined ? [] : [[name, path] as const];
      }),
    );
    expect(
      verdict(
        [...used].flatMap(([name, path]) => (names.has(name) ? [] : [path])),
        'core/formats/README.md lists the names that files of a format may have: take the one that means this, or add a name with its meaning there when no format has had such a thing.',
      ),
    ).toBe('');
    expect(
      verdict(
        [...names].filter((name) => !used.has(name)),
        'core/formats/README.md lists names that no format has: take them out.',
      ),
    ).toBe('');
  });
});
