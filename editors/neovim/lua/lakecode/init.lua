-- The entry of the plugin: setup, the subcommands of :Lakecode, and the
-- functions that other plugins may use. See :help lakecode.
local M = {}

M.config = {
  -- The server. It is looked up in PATH.
  cmd = { 'lakecode' },
  -- The model of new messages, { provider = ..., model = ... }. Nil takes the
  -- conversation's, then the only one in providers.json.
  model = nil,
  -- The workspace. Nil takes the nearest folder with a .git, else the current one.
  root = nil,
  -- Width of the chat, in columns.
  width = 72,
}

--- Changes the configuration. Call it before the first :Lakecode.
function M.setup(opts)
  M.config = vim.tbl_deep_extend('force', M.config, opts or {})
end

local function chat()
  return require('lakecode.chat')
end

--- Opens the chat, starting the server when it does not run.
function M.open()
  chat().open()
end

--- Sends a message, opening the chat when it is not shown.
function M.submit(text)
  chat().submit(text)
end

--- Stops the running turn.
function M.stop()
  chat().stop()
end

local commands = {
  open = function()
    M.open()
  end,
  stop = function()
    M.stop()
  end,
  new = function()
    chat().new()
  end,
  resume = function()
    chat().resume()
  end,
  send = function(rest)
    M.submit(table.concat(rest, ' '))
  end,
  sessions = function()
    chat().sessions()
  end,
  quit = function()
    chat().quit()
  end,
}

--- Runs a subcommand of :Lakecode; none opens the chat.
function M.command(args)
  local name = args[1] or 'open'
  local run = commands[name]
  if not run then
    vim.notify('Lakecode: unknown subcommand ' .. name .. '; there are ' .. table.concat(M.complete(''), ', '), vim.log.levels.ERROR)
    return
  end
  run(vim.list_slice(args, 2))
end

--- Completes the subcommands.
function M.complete(lead, line)
  if line and #vim.split(vim.trim(line), '%s+') > (lead == '' and 1 or 2) then
    return {}
  end
  local out = {}
  for name in pairs(commands) do
    if vim.startswith(name, lead) then
      table.insert(out, name)
    end
  end
  table.sort(out)
  return out
end

return M
