/** Names of operations and providers in the GenAI conventions. */
import type { Operation } from 'sluice';

/** `gen_ai.operation.name` of operations, where the conventions have a name other than the gateway's. */
const operations: { readonly [O in Operation]?: string } = {
  embed: 'embeddings',
};

/** `gen_ai.operation.name` of chats in formats for which it is not `chat`. */
const chats: Readonly<Record<string, string>> = {
  'generate-content': 'generate_content',
  'text-completions': 'text_completion',
};

/** Returns `gen_ai.operation.name` of a call. */
export function operationName(operation: Operation, format: string): string {
  if (operation === 'chat') return chats[format] ?? 'chat';
  return operations[operation] ?? operation.replaceAll('-', '_');
}

/** `gen_ai.provider.name` by kind of channel, where it is not the name of the kind. */
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
