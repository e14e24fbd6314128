// Search on pages that are opened from the file system. Browsers start no worker from file:, so the script of the
// search runs in a hidden frame of the page, behind the interface of a worker. Over http: nothing changes.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #ready;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      this.#frame.srcdoc = "<!doctype html><title>search</title>";
      this.#ready = new Promise((resolve, reject) => {
        this.#frame.onload = () => this.#load(url, resolve, reject);
      });
      document.body.append(this.#frame);
    }

    #load(url, resolve, reject) {
      const inner = this.#frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      inner.document.body.append(script);
    }

    async postMessage(data) {
      await this.#ready;
      const inner = this.#frame.contentWindow;
      inner.dispatchEvent(new inner.MessageEvent("message", { data }));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
