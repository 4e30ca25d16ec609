import type { Operation } from 'sluice';

/** `gen_ai.operation.name` where the conventions have a word for an operation; the gateway's own word elsewhere. */
const operations: { readonly [O in Operation]?: string } = {
  embed: 'embeddings',
};

/** Formats whose chats have another word than `chat`. */
const chats: Readonly<Record<string, string>> = {
  'generate-content': 'generate_content',
  'text-completions': 'text_completion',
};

/** Returns `gen_ai.operation.name` of a call. */
export function operationName(operation: Operation, format: string): string {
  if (operation === 'chat') return chats[format] ?? 'chat';
  return operations[operation] ?? operation.replaceAll('-', '_');
}

/** `gen_ai.provider.name` by kind of channel, where the conventions have another word than the kind's name. */
const providers: Readonly<Record<string, string>> = {
  'azure-foundry': 'azure.ai.inference',
  'azure-openai': 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  gemini: 'gcp.gemini',
  'gemini-compatible': 'gcp.gen_ai',
  'github-copilot': 'github.copilot',
  mistral: 'mistral_ai',
  moonshot: 'moonshot_ai',
  sagemaker: 'aws.sagemaker',
  vertex: 'gcp.vertex_ai',
  watsonx: 'ibm.watsonx.ai',
  xai: 'x_ai',
};

/** Returns `gen_ai.provider.name` of a kind of channel. */
export function providerName(kind: string): string {
  return providers[kind] ?? kind;
}
