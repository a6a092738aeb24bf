"""Sends HTTP/1.1 requests of ours to servers of others: the only way out, with one rule.

* **Addresses.** A request names the private networks that it may reach besides the public network;
  none by default. None in their place means any address: an operator's setting names the host. A
  name is looked up once, every address that it gives is checked, and the connection is made to one
  of these. `localhost` leads to this machine, or nowhere.
* **Redirects** are not followed, unless the user of the client allows some. Then they lead to the
  same scheme, credentials do not follow to another origin, and a server that was reached over the
  public network or through a proxy leads to public addresses only.
* **Proxies** are not used, unless the user of the client allows them, which those do that fetch
  what is published: a proxy looks names up itself. Proxies tunnel (CONNECT). This machine is never
  reached through one.
* **Sizes** of the head and of the body, as sent and as unpacked, are bounded. What is too large is
  refused before it is kept.
* **Times** for connecting, for silence and for the whole exchange are bounded.
* **TLS** is verified by the authorities of the system (or SSL_CERT_FILE) and those of a CA file.
* **Errors** name host, port, what happened and one thing to do; no path, query, header or body.

`client.py` is the entry, `rules.py` has what goes in and out. Connections to our own server are the
bridge's (`bridge/http_client.py`).
"""
