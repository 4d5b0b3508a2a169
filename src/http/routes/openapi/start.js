// Shows the OpenAPI document of this gateway in the page at /docs. Calls go to the gateway that served
// this file, which is the only one that the page may connect to.
"use strict";

const root = new URL("..", document.currentScript.src);

async function start() {
  const response = await fetch(new URL("openapi.json", root));
  if (!response.ok) {
    throw new Error(`openapi.json: status ${response.status}`);
  }
  const spec = await response.json();
  spec.servers = [{ url: root.href.replace(/\/$/, "") }];
  SwaggerUIBundle({
    spec,
    dom_id: "#api",
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayOperationId: true,
    displayRequestDuration: true,
    filter: true,
    validatorUrl: null,
  });
}

start().catch((error) => {
  document.getElementById("api").textContent = `The document could not be loaded: ${error.message}`;
});
