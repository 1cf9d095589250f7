/* Browsers refuse workers to pages opened from the disk. There, the search runs in a hidden frame in a worker's place:
   it takes and posts messages in the same way. Named so that the theme's offline plugin asks no network for another. */
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.onload = () => {
        this.deliver = data => inside.dispatchEvent(new inside.MessageEvent("message", { data }))
        this.waiting.splice(0).forEach(this.deliver)
      }
      inside.document.body.append(script)
    }
    postMessage(data) {
      if (this.deliver) this.deliver(data)
      else this.waiting.push(data)
    }
  }
}
