; Drawing: a screen in the dark, one row of tiles a frame, and the sprites.

.include "game.inc"

DRAW_TEXT = 16                          ; frames of drawing: 0 begins, 1 to 15 rows, then texts, then light
DRAW_LIGHT = 17

.segment "CODE"
draw_step:
    ldx timer
    inc timer
    cpx #0
    beq @begin
    cpx #DRAW_TEXT
    bcc @row
    beq @text
    lda #%00011110                      ; light
    sta mask
    lda #0
    sta timer
    lda #MODE_PLAY
    ldx level
    beq @title
    cpx #LAST_SCREEN
    bne @mode
    lda #MODE_ENDING
    bne @mode
@title:
    lda #MODE_TITLE
@mode:
    sta mode
    jmp show_player
@row:
    jmp draw_row
@text:
    jmp draw_text

@begin:                                 ; everything that a level depends on is set here
    lda #0
    sta mask
    sta page
    sta vx
    sta vy
    sta facing
    sta door_opened
    lda #>screens
    clc
    adc level
    sta page+1
    ldy #PAGE_START
    lda (page), y
    sta x_low
    iny
    lda (page), y
    sta x_high
    iny
    lda (page), y
    sta y_low
    iny
    lda (page), y
    sta y_high
    ldy #PAGE_DOOR
    lda (page), y
    sta door
    lda #1
    sta grounded
    sta rng
    jmp hide_sprites

; Row of tiles X - 1: two rows of cells.
draw_row:
    dex
    txa
    lsr a
    lsr a
    ora #$20
    sta PPU_ADDRESS
    txa                                 ; (X - 1) * 64, low byte
    ror a
    ror a
    ror a
    and #$C0
    sta PPU_ADDRESS
    txa
    asl a
    asl a
    asl a
    asl a
    tay
    lda #0
    jsr @cells
    tya
    sec
    sbc #16
    tay
    lda #2
@cells:                                 ; the upper (A = 0) or lower (A = 2) cells of 16 tiles from Y on
    sta scratch
    lda #16
    sta scratch+1
@tile:
    lda (page), y
    iny
    tax
    beq @empty
    lda tile_cells, x
    clc
    adc scratch
    sta PPU_DATA
    clc
    adc #1
    sta PPU_DATA
    bne @next
@empty:                                 ; a star here and there
    lda #' '
    ldx scratch
    bne @dark
    ldx star_places, y
    beq @dark
    lda tile_cells
@dark:
    sta PPU_DATA
    lda #' '
    sta PPU_DATA
@next:
    dec scratch+1
    bne @tile
    rts

; Palettes of the tiles, colours, and what is written on the screen.
draw_text:
    lda #$23
    sta PPU_ADDRESS
    lda #$C0
    sta PPU_ADDRESS
    lda #0                              ; attributes + 64 * level
    sta scratch
    lda level
    lsr a
    ror scratch
    lsr a
    ror scratch
    tax
    lda scratch
    clc
    adc #<attributes
    sta scratch
    txa
    adc #>attributes
    sta scratch+1
    ldy #0
:   lda (scratch), y
    sta PPU_DATA
    iny
    cpy #64
    bne :-
    lda #$3F
    sta PPU_ADDRESS
    lda #0
    sta PPU_ADDRESS
    tax
:   lda palettes, x
    sta PPU_DATA
    inx
    cpx #32
    bne :-
    lda #$3F
    sta PPU_ADDRESS
    lda #0
    sta PPU_ADDRESS
    lda level
    asl a
    asl a
    tax
    ldy #4
:   lda bricks, x
    sta PPU_DATA
    inx
    dey
    bne :-
    ldx level
    ldy text_starts, x
@text:
    lda texts, y
    beq @done
    sta PPU_ADDRESS
    iny
    lda texts, y
    sta PPU_ADDRESS
    iny
    ldx texts, y
    iny
:   lda texts, y
    sta PPU_DATA
    iny
    dex
    bne :-
    beq @text
@done:
    rts

; In the vertical blank: four empty cells where the door was.
open_door:
    ldy #PAGE_PLACE
    lda (page), y
    tay                                 ; row * 16 + column
    lsr a
    lsr a
    lsr a
    lsr a
    lsr a
    lsr a
    ora #$20
    sta scratch+2
    sta PPU_ADDRESS
    tya
    and #$0F
    asl a
    sta scratch+3
    tya
    and #$30
    asl a
    asl a
    ora scratch+3
    sta PPU_ADDRESS
    ldx #' '
    stx PPU_DATA
    stx PPU_DATA
    ora #32
    ldy scratch+2
    sty PPU_ADDRESS
    sta PPU_ADDRESS
    stx PPU_DATA
    stx PPU_DATA
    lda #0
    sta door_opened
    rts

hide_sprites:
    lda #$FF
    ldx #0
:   sta sprites, x
    inx
    bne :-
    rts

; The player's sprite from its place, speed and mode. Leaves its place in pixels in column and row.
show_player:
    lda x_high
    sta scratch
    lda x_low
    lsr scratch
    ror a
    lsr scratch
    ror a
    sta column
    sta sprites+3
    lda y_high
    sta scratch
    lda y_low
    lsr scratch
    ror a
    lsr scratch
    ror a
    sta row
    sec
    sbc #1                              ; sprites appear a line below what is asked for
    sta sprites
    lda #$FF
    sta sprites+4                       ; no motes
    sta sprites+8
    sta sprites+12
    sta sprites+16
    lda vx
    beq @facing
    and #$80
    lsr a                               ; $40 mirrors
    sta facing
@facing:
    lda facing
    sta sprites+2
    ldx #4
    lda mode
    cmp #MODE_DYING
    beq @pose
    ldx #3
    lda grounded
    beq @pose
    ldx #0
    lda vx
    beq @pose
    inx
    lda column
    and #8
    beq @pose
    inx
@pose:
    stx sprites+1
    rts

; Four motes around the player, where the noise puts them.
show_motes:
    ldx #16
@mote:
    lda noise, x
    and #$1F
    sec
    sbc #12
    clc
    adc row
    sta sprites, x
    lda #5
    sta sprites+1, x
    lda #1
    sta sprites+2, x
    lda noise+1, x
    and #$1F
    sec
    sbc #12
    clc
    adc column
    sta sprites+3, x
    dex
    dex
    dex
    dex
    bne @mote
    rts

.segment "RODATA"
star_places:                            ; one byte a tile; 1 puts a star into it if it is empty
.repeat 257, i
    .byte ((i * 73 + i / 16 * 29) .mod 11) = 0
.endrepeat
