export { startGateway, type TestGateway } from 'sluice/testing';
