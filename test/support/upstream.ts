export { startUpstream, type ScriptedUpstream, type SeenRequest } from 'sluice/testing';
